# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# One image for each target, scheduler and controller. The builder is the only image that is
# pulled: what it builds is static and needs nothing beside it.
#
#   docker buildx build --target scheduler --platform linux/amd64,linux/arm64 --build-arg VERSION=v1.2.3 .
#
# Where not even the builder can be pulled, make image packs the same images without an engine.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION
ENV GOOS=$TARGETOS GOARCH=$TARGETARCH VERSION=$VERSION
RUN hack/go-build.sh bin/espalier-scheduler ./cmd/scheduler
RUN hack/go-build.sh bin/espalier-controller ./cmd/controller

FROM scratch AS controller
COPY --from=build /src/bin/espalier-controller /espalier-controller
USER 65532:65532
ENTRYPOINT ["/espalier-controller"]

# The last target is what is built without --target.
FROM scratch AS scheduler
COPY --from=build /src/bin/espalier-scheduler /espalier-scheduler
USER 65532:65532
ENTRYPOINT ["/espalier-scheduler"]
