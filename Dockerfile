# The programs as images, built from the sources: docker build -t kruise-manager . && docker build -t kruise-daemon --target kruise-daemon .
# && docker build -t fake-apiserver --target fake-apiserver . They are static, so that an image has nothing else.
# conformance/containers/Dockerfile makes the same images of programs that are built already.
FROM rust:1.89-bookworm AS build
WORKDIR /src
COPY . .
RUN RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target "$(uname -m)-unknown-linux-gnu" \
    --package fake-apiserver --package seatrial-controller --package kruise-daemon --bin fake-apiserver --bin kruise-manager --bin kruise-daemon \
    && mkdir /programs && cp target/*/release/fake-apiserver target/*/release/kruise-manager target/*/release/kruise-daemon /programs

FROM scratch AS fake-apiserver
COPY --from=build /programs/fake-apiserver /fake-apiserver
WORKDIR /kubeconfig
WORKDIR /tmp
EXPOSE 6443
# Ready once it prints `export KUBECONFIG=`.
ENTRYPOINT ["/fake-apiserver"]
CMD ["serve", "--listen", "0.0.0.0:6443", "--kubeconfig", "/kubeconfig/admin.conf"]

# The sockets of container runtimes belong to root.
FROM scratch AS kruise-daemon
COPY --from=build /programs/kruise-daemon /kruise-daemon
USER 0:0
ENTRYPOINT ["/kruise-daemon"]

FROM scratch AS kruise-manager
COPY --from=build /programs/kruise-manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
