# The command `foveate` with its native worlds; worlds of Gymnasium need Python, which is not in here.
#
#   docker build -t foveate .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" foveate watch     # drive.mp4 in the current folder
FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package foveate-cli && cp target/release/foveate /usr/local/bin/foveate

# Debian of the same release as the image above, for the same C library.
FROM debian:trixie-slim
COPY --from=build /usr/local/bin/foveate /usr/local/bin/foveate
RUN useradd --create-home --uid 1000 foveate && mkdir /work && chown foveate:foveate /work
USER foveate
WORKDIR /work
ENTRYPOINT ["foveate"]
CMD ["--help"]
