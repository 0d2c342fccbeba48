#!/usr/bin/env bash
# Writes karpenter-values.yaml for an AKS cluster, with the arguments of the original's script:
#   configure-values.sh CLUSTER RESOURCE-GROUP [SERVICE-ACCOUNT [IDENTITY [LOG-CALLS [MODE [MACHINES-POOL]]]]]
# It needs `az login`, the cluster in the kubeconfig (`az aks get-credentials`), and the program karpenter.
set -euo pipefail

if [ "$#" -lt 2 ] || [ "$#" -gt 7 ]; then
  echo "usage: $0 CLUSTER RESOURCE-GROUP [SERVICE-ACCOUNT [IDENTITY [LOG-CALLS [MODE [MACHINES-POOL]]]]]" >&2
  exit 1
fi

subscription=${AZURE_SUBSCRIPTION_ID:-$(az account show --query id --output tsv)}
exec "${KARPENTER:-karpenter}" configure --provider azure --subscription "$subscription" "$@"
