# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Images, a cluster, a release.

.PHONY: image
image: bin/espalier-scheduler bin/espalier-controller ## pack the binaries into images below _output/images, with no engine
	@hack/image.sh bin/espalier-scheduler bin/espalier-controller

.PHONY: deploy
deploy: ## install into the cluster of the current kubeconfig, and upgrade; DEPLOY_FLAGS has flags of helm
	@hack/deploy.sh up $(DEPLOY_FLAGS)

.PHONY: undeploy
undeploy: ## remove it from there, and all PlacementPolicies with their kind
	@hack/deploy.sh down

.PHONY: release-artifacts
release-artifacts: ## binaries, images, chart, manifests, bills of materials and checksums, below _output/release
	@hack/release.sh
