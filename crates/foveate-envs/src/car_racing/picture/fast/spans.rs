//! Small polygons as spans of whole canvas pixels.

/// Maximum number of rows of a polygon; further rows are cut off. The car's largest polygon has a tenth of
/// it.
const ROWS: usize = 256;

/// Calls `span(y, first x, last x)` for the pixels of a convex polygon with integer corners, with the rule of
/// `pygame.draw.polygon`: in every row the first edge found rounds down, the second rounds up, and both ends
/// are included.
pub(super) fn fill(points: &[[i32; 2]], mut span: impl FnMut(i32, i32, i32)) {
    let mut low = points[0];
    let mut high = points[0];
    for p in points {
        low = [low[0].min(p[0]), low[1].min(p[1])];
        high = [high[0].max(p[0]), high[1].max(p[1])];
    }
    let (bottom, top) = (low[1], high[1]);
    if bottom == top {
        span(bottom, low[0], high[0]);
        return;
    }
    let rows = (top.saturating_sub(bottom) as usize + 1).min(ROWS);
    let mut first = [i32::MAX; ROWS];
    let mut second = [i32::MAX; ROWS];
    let mut from = points[points.len() - 1];
    for &to in points {
        let (a, b) = if from[1] < to[1] { (from, to) } else { (to, from) };
        from = to;
        let (dx, dy) = (b[0].wrapping_sub(a[0]), b[1].wrapping_sub(a[1]));
        if dy == 0 {
            continue;
        }
        // The topmost row belongs to the edges that end in it.
        let end = (b[1] - bottom) as usize + usize::from(b[1] == top);
        let begin = (a[1] - bottom) as usize;
        // x = a.x + k dx / dy, stored as an integer part and a remainder in 0..dy.
        let (step, fine) = (dx.div_euclid(dy), dx.rem_euclid(dy));
        let (mut x, mut rest) = (a[0], 0);
        for row in begin..end.min(rows) {
            if first[row] == i32::MAX {
                first[row] = x;
            } else if second[row] == i32::MAX {
                second[row] = x + i32::from(rest > 0);
            }
            x = x.wrapping_add(step);
            rest += fine;
            if rest >= dy {
                rest -= dy;
                x += 1;
            }
        }
    }
    for row in 0..rows {
        let (a, b) = (first[row], second[row]);
        if b != i32::MAX {
            span(bottom + row as i32, a.min(b), a.max(b));
        }
    }
    let mut from = points[points.len() - 1];
    for &to in points {
        if from[1] == to[1] && to[1] > bottom && to[1] < top {
            span(to[1], from[0].min(to[0]), from[0].max(to[0]));
        }
        from = to;
    }
}
