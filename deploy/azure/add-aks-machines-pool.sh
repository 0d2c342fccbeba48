#!/usr/bin/env bash
# Adds an agent pool in which AKS makes machines for Karpenter (provision modes aksmachineapi and
# aksmachineapiheaderbatch), and lets the controller use it:
#   add-aks-machines-pool.sh CLUSTER RESOURCE-GROUP [POOL]
set -euo pipefail

if [ "$#" -lt 2 ] || [ "$#" -gt 3 ]; then
  echo "usage: $0 CLUSTER RESOURCE-GROUP [POOL]" >&2
  exit 1
fi
cluster=$1 group=$2 pool=${3:-testmpool}
identity=${IDENTITY:-karpentermsi}

id=$(az aks show --name "$cluster" --resource-group "$group" --query id --output tsv)
# Another change of the cluster may be under way.
for attempt in 1 2 3 4 5 6; do
  if az rest --method put --url "$id/agentPools/$pool?api-version=2025-07-01" \
    --body '{"properties": {"mode": "Machines"}}' --output none; then
    break
  elif [ "$attempt" -eq 6 ]; then
    echo "the agent pool $pool could not be made" >&2
    exit 1
  fi
  sleep 10
done

principal=$(az identity show --name "$identity" --resource-group "$group" --query principalId --output tsv)
scope=$(az group show --name "$group" --query id --output tsv)
az role assignment create --assignee-object-id "$principal" --assignee-principal-type ServicePrincipal \
  --scope "$scope" --role "Azure Kubernetes Service Contributor Role" --output none
