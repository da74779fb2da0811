# kruise-manager as an image: docker build -t kruise-manager .
FROM rust:1.89-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package controller --bin kruise-manager

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/kruise-manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
