# The manager and the daemon as images: docker build -t kruise-manager . && docker build -t kruise-daemon --target daemon .
FROM rust:1.89-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package controller --package kruise-daemon --bin kruise-manager --bin kruise-daemon

# The sockets of container runtimes belong to root.
FROM gcr.io/distroless/cc-debian12 AS daemon
COPY --from=build /src/target/release/kruise-daemon /kruise-daemon
USER 0:0
ENTRYPOINT ["/kruise-daemon"]

FROM gcr.io/distroless/cc-debian12:nonroot AS manager
COPY --from=build /src/target/release/kruise-manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
