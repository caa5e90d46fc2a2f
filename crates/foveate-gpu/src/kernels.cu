// Kernels of S3TA on an accelerator, compiled at run time: by NVRTC for the GPU, and in tests by the machine's C compiler.
//
// Every kernel computes one number, or one row, per thread, so that results do not depend on how threads are scheduled.
// `a.p` are arrays, `a.d` sizes, `a.f` numbers; ops.rs checks the lengths before each launch. All arrays are row-major.

typedef struct {
    void *p[8];
    int d[12];
    float f[2];
    int n; // threads that have work
} Args;

#ifdef __CUDACC__
#define KERNEL(name) extern "C" __global__ void name(const Args a)
#define BEGIN                                                            \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                  \
    if (i >= (unsigned)a.n) return;
#else
#include <math.h>
#define KERNEL(name)                                                     \
    static void name##_at(const Args a, unsigned i);                     \
    void name(const Args *a) {                                           \
        for (unsigned i = 0; i < (unsigned)a->n; i++) name##_at(*a, i);  \
    }                                                                    \
    static void name##_at(const Args a, unsigned i)
#define BEGIN
#endif

#define SIGMOID(x) (1.0f / (1.0f + expf(-(x))))

// The windows of pictures, one row each: out[i], in[frames, H, W, C]; d: H W C KH KW stride top left OH OW.
#define WINDOW                                                                       \
    unsigned H = a.d[0], W = a.d[1], C = a.d[2], KW = a.d[4], S = a.d[5];            \
    unsigned K = a.d[3] * KW * C, k = i % K, window = i / K;                         \
    unsigned x = window % a.d[9], rest = window / a.d[9];                            \
    unsigned y = rest % a.d[8], frame = rest / a.d[8];                               \
    unsigned c = k % C, kx = k / C % KW, ky = k / (C * KW);                          \
    int row = (int)(y * S + ky) - a.d[6], column = (int)(x * S + kx) - a.d[7];       \
    int inside = row >= 0 && row < (int)H && column >= 0 && column < (int)W;         \
    size_t at = ((size_t)(frame * H + row) * W + column) * C + c;

// Of bytes, times f[0].
KERNEL(windows_of_bytes) {
    BEGIN
    WINDOW
    ((float *)a.p[0])[i] = inside ? ((const unsigned char *)a.p[1])[at] * a.f[0] : 0.0f;
}

// Of numbers. Pictures whose p[2][frame] is not 0 count as zeros, if there is a p[2].
KERNEL(windows) {
    BEGIN
    WINDOW
    const unsigned char *fresh = (const unsigned char *)a.p[2];
    inside = inside && !(fresh && fresh[frame]);
    ((float *)a.p[0])[i] = inside ? ((const float *)a.p[1])[at] : 0.0f;
}

// The gradient of the pictures, out[frames, H, W, C], from that of their windows; the same sizes.
KERNEL(pictures_of_windows) {
    BEGIN
    int H = a.d[0], W = a.d[1], C = a.d[2], KH = a.d[3], KW = a.d[4], S = a.d[5], OH = a.d[8], OW = a.d[9];
    int c = i % C, rest = i / C, column = rest % W;
    rest /= W;
    int row = rest % H, frame = rest / H;
    const float *windows = (const float *)a.p[1];
    float sum = 0.0f;
    for (int ky = 0; ky < KH; ky++) {
        int y = row + a.d[6] - ky;
        if (y < 0 || y % S || y / S >= OH) continue;
        for (int kx = 0; kx < KW; kx++) {
            int x = column + a.d[7] - kx;
            if (x < 0 || x % S || x / S >= OW) continue;
            size_t window = ((size_t)frame * OH + y / S) * OW + x / S;
            sum += windows[((window * KH + ky) * KW + kx) * C + c];
        }
    }
    ((float *)a.p[0])[i] = sum;
}

// x[i] += bias[i % d0], and relu if d1.
KERNEL(add_bias) {
    BEGIN
    float *x = (float *)a.p[0];
    float y = x[i] + ((const float *)a.p[1])[i % a.d[0]];
    x[i] = a.d[1] && y < 0.0f ? 0.0f : y;
}

// d[i] = 0 where the output y[i] of relu is 0.
KERNEL(relu_backward) {
    BEGIN
    if (((const float *)a.p[1])[i] <= 0.0f) ((float *)a.p[0])[i] = 0.0f;
}

KERNEL(add) {
    BEGIN
    ((float *)a.p[0])[i] += ((const float *)a.p[1])[i];
}

// y[i] = x[i], or 0 where fresh[i / d0].
KERNEL(keep) {
    BEGIN
    int fresh = ((const unsigned char *)a.p[2])[i / a.d[0]];
    ((float *)a.p[0])[i] = fresh ? 0.0f : ((const float *)a.p[1])[i];
}

// The gates of LSTMs, of d0 units, in place: z[rows, 4 units] (i, f, g, o), last c, h, c, tanh c [rows, units].
// The last c counts as 0 where fresh[row / d1]. f0 is added to the forget gate.
KERNEL(gates) {
    BEGIN
    int n = a.d[0];
    unsigned row = i / n, j = i % n;
    float *z = (float *)a.p[0] + (size_t)row * 4 * n + j;
    float last = ((const unsigned char *)a.p[2])[row / a.d[1]] ? 0.0f : ((const float *)a.p[1])[i];
    float in = SIGMOID(z[0]), forget = SIGMOID(z[n] + a.f[0]), new_ = tanhf(z[2 * n]), out = SIGMOID(z[3 * n]);
    float c = forget * last + in * new_, tanh_c = tanhf(c);
    z[0] = in, z[n] = forget, z[2 * n] = new_, z[3 * n] = out;
    ((float *)a.p[3])[i] = out * tanh_c;
    ((float *)a.p[4])[i] = c;
    ((float *)a.p[5])[i] = tanh_c;
}

// Their gradient: gates become the gradient of the sums; dc, that of c from later steps, becomes that of the last c.
KERNEL(gates_backward) {
    BEGIN
    int n = a.d[0];
    unsigned row = i / n, j = i % n;
    float *z = (float *)a.p[0] + (size_t)row * 4 * n + j;
    int fresh = ((const unsigned char *)a.p[2])[row / a.d[1]];
    float last = fresh ? 0.0f : ((const float *)a.p[1])[i], tanh_c = ((const float *)a.p[3])[i];
    float dh = ((const float *)a.p[4])[i], *dc = (float *)a.p[5];
    float in = z[0], forget = z[n], new_ = z[2 * n], out = z[3 * n];
    float pull = dc[i] + dh * out * (1.0f - tanh_c * tanh_c);
    z[0] = pull * new_ * (in * (1.0f - in));
    z[n] = pull * last * (forget * (1.0f - forget));
    z[2 * n] = pull * in * (1.0f - new_ * new_);
    z[3 * n] = dh * tanh_c * (out * (1.0f - out));
    dc[i] = fresh ? 0.0f : pull * forget;
}

// Scores of cells: s[b, heads, cells] holds queries times the basis, and becomes f0 times all of it;
// q[b, heads, width], h[b, cells, channels]; d: heads cells keys width channels.
KERNEL(scores) {
    BEGIN
    unsigned heads = a.d[0], cells = a.d[1], cell = i % cells, query = i / cells;
    const float *q = (const float *)a.p[1] + (size_t)query * a.d[3];
    const float *h = (const float *)a.p[2] + ((size_t)(query / heads) * cells + cell) * a.d[4];
    float *s = (float *)a.p[0];
    float sum = s[i];
    for (int k = 0; k < a.d[2]; k++) sum += q[k] * h[k];
    s[i] = a.f[0] * sum;
}

// Softmax of each row of d0 numbers, in place.
KERNEL(softmax) {
    BEGIN
    float *x = (float *)a.p[0] + (size_t)i * a.d[0], most = x[0], sum = 0.0f;
    for (int j = 1; j < a.d[0]; j++) most = fmaxf(most, x[j]);
    for (int j = 0; j < a.d[0]; j++) {
        x[j] = expf(x[j] - most);
        sum += x[j];
    }
    for (int j = 0; j < a.d[0]; j++) x[j] /= sum;
}

// Its gradient: d becomes f0 w (d - sum of w d).
KERNEL(softmax_backward) {
    BEGIN
    float *d = (float *)a.p[0] + (size_t)i * a.d[0], sum = 0.0f;
    const float *w = (const float *)a.p[1] + (size_t)i * a.d[0];
    for (int j = 0; j < a.d[0]; j++) sum += w[j] * d[j];
    for (int j = 0; j < a.d[0]; j++) d[j] = a.f[0] * w[j] * (d[j] - sum);
}

// x[b, heads (channels - keys + basis) + heads width + told]: answers, queries, last step.
// p: x, contents[b, heads, channels], places[b, heads, basis], queries[b, heads, width], told[b, told];
// d: heads keys channels basis width told.
KERNEL(gather_answers) {
    BEGIN
    int heads = a.d[0], keys = a.d[1], channels = a.d[2], basis = a.d[3], width = a.d[4], told = a.d[5];
    int features = channels - keys + basis, all = heads * (features + width) + told;
    int b = i / all, j = i % all;
    float y;
    if (j < heads * features) {
        int head = j / features, f = j % features, row = b * heads + head;
        y = f < channels - keys ? ((const float *)a.p[1])[(size_t)row * channels + keys + f]
                                : ((const float *)a.p[2])[(size_t)row * basis + f - (channels - keys)];
    } else if (j < heads * (features + width)) {
        y = ((const float *)a.p[3])[(size_t)b * heads * width + j - heads * features];
    } else {
        y = ((const float *)a.p[4])[(size_t)b * told + j - heads * (features + width)];
    }
    ((float *)a.p[0])[i] = y;
}

// Its gradient, one thread per number of contents, places and queries: p and d as above, without told.
KERNEL(scatter_answers) {
    BEGIN
    int heads = a.d[0], keys = a.d[1], channels = a.d[2], basis = a.d[3], width = a.d[4], told = a.d[5];
    int features = channels - keys + basis, all = heads * (features + width) + told;
    int own = channels + basis + width, row = i / own, j = i % own, b = row / heads, head = row % heads;
    const float *x = (const float *)a.p[0] + (size_t)b * all;
    if (j < channels) {
        ((float *)a.p[1])[(size_t)row * channels + j] = j < keys ? 0.0f : x[head * features + j - keys];
    } else if (j < channels + basis) {
        ((float *)a.p[2])[(size_t)row * basis + j - channels] = x[head * features + j - keys];
    } else {
        j -= channels + basis;
        ((float *)a.p[3])[(size_t)row * width + j] = x[heads * features + head * width + j];
    }
}

// The gradient of h[b, cells, channels]: of keys by scores ds[b, heads, cells] and queries, of values by weights and the
// gradient of the contents. p: dh, ds, queries, weights, contents; d: heads cells keys width channels.
KERNEL(cells_backward) {
    BEGIN
    unsigned heads = a.d[0], cells = a.d[1], channels = a.d[4];
    unsigned c = i % channels, cell = i / channels % cells, b = i / channels / cells;
    float sum = 0.0f;
    for (unsigned head = 0; head < heads; head++) {
        size_t row = b * heads + head;
        if (c < (unsigned)a.d[2])
            sum += ((const float *)a.p[1])[row * cells + cell] * ((const float *)a.p[2])[row * a.d[3] + c];
        else
            sum += ((const float *)a.p[3])[row * cells + cell] * ((const float *)a.p[4])[row * channels + c];
    }
    ((float *)a.p[0])[i] = sum;
}

// dq[rows, width] += the first of contents[rows, channels], then places[rows, basis]; d: keys width channels basis.
KERNEL(queries_backward) {
    BEGIN
    int width = a.d[1], row = i / width, j = i % width;
    ((float *)a.p[0])[i] += j < a.d[0] ? ((const float *)a.p[1])[(size_t)row * a.d[2] + j]
                                       : ((const float *)a.p[2])[(size_t)row * a.d[3] + j - a.d[0]];
}

// out[rows, n] of x: an extra sum over d1 rows in each thread, so that a second pass has few rows: out[i] = sum of
// x[d1 block .. , column]; d: columns, rows of a block, rows.
KERNEL(sum_rows) {
    BEGIN
    unsigned columns = a.d[0], column = i % columns, block = i / columns;
    unsigned end = (block + 1) * a.d[1] < (unsigned)a.d[2] ? (block + 1) * a.d[1] : a.d[2];
    const float *x = (const float *)a.p[1];
    float sum = 0.0f;
    for (unsigned row = block * a.d[1]; row < end; row++) sum += x[(size_t)row * columns + column];
    ((float *)a.p[0])[i] = sum;
}
