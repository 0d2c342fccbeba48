# A static binary in an otherwise empty image, for amd64 and arm64:
#   docker buildx build --platform linux/amd64,linux/arm64 --tag <image> .
FROM --platform=$BUILDPLATFORM rust:1.95-alpine AS build
RUN apk add --no-cache clang cmake lld make musl-dev perl
ARG TARGETARCH
WORKDIR /src
COPY . .
# Each architecture is built natively or through clang, which needs no second tool chain.
RUN set -eu; \
    case "$TARGETARCH" in amd64) target=x86_64 ;; arm64) target=aarch64 ;; *) echo "no build for $TARGETARCH" >&2; exit 1 ;; esac; \
    target="$target-unknown-linux-musl"; \
    rustup target add "$target"; \
    export CC="clang --target=$target" AR=llvm-ar RUSTFLAGS="-C linker=clang -C link-arg=--target=$target -C link-arg=-fuse-ld=lld"; \
    cargo build --locked --profile dist --package karpenter --target "$target"; \
    mkdir /out; \
    cp "target/$target/dist/karpenter" /out/karpenter; \
    cp /etc/ssl/certs/ca-certificates.crt /out/

FROM scratch
COPY --from=build /out/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/karpenter /karpenter
USER 65532:65532
ENTRYPOINT ["/karpenter"]
