#!/usr/bin/env bash
# Creates an AKS cluster that Karpenter can run in, and everything that it needs there:
#   create-cluster.sh CLUSTER RESOURCE-GROUP NAMESPACE
# LOCATION is the region (westus3 when not set); IDENTITY and SERVICE_ACCOUNT are the controller's.
set -euo pipefail

if [ "$#" -ne 3 ]; then
  echo "usage: $0 CLUSTER RESOURCE-GROUP NAMESPACE" >&2
  exit 1
fi
cluster=$1 group=$2 namespace=$3
location=${LOCATION:-westus3}
identity=${IDENTITY:-karpentermsi}
account=${SERVICE_ACCOUNT:-karpenter-sa}

az group create --name "$group" --location "$location" --output none

# Who the controller is.
principal=$(az identity create --name "$identity" --resource-group "$group" --location "$location" \
  --query principalId --output tsv)

az aks create --name "$cluster" --resource-group "$group" --location "$location" \
  --node-count 3 --generate-ssh-keys \
  --network-plugin azure --network-plugin-mode overlay --network-dataplane cilium \
  --enable-managed-identity --enable-oidc-issuer --enable-workload-identity --output none
az aks get-credentials --name "$cluster" --resource-group "$group" --overwrite-existing

# The controller's service account is that identity.
issuer=$(az aks show --name "$cluster" --resource-group "$group" --query oidcIssuerProfile.issuerUrl --output tsv)
az identity federated-credential create --name KARPENTER_FID --identity-name "$identity" --resource-group "$group" \
  --issuer "$issuer" --subject "system:serviceaccount:$namespace:$account" \
  --audience api://AzureADTokenExchange --output none

# What it may do: virtual machines and their networks, and giving nodes the identity of the cluster's kubelets.
nodes=$(az aks show --name "$cluster" --resource-group "$group" --query nodeResourceGroup --output tsv)
scope=$(az group show --name "$nodes" --query id --output tsv)
for role in "Virtual Machine Contributor" "Network Contributor" "Managed Identity Operator"; do
  # The directory may need a moment to know a new identity.
  for attempt in 1 2 3 4 5 6; do
    if az role assignment create --assignee-object-id "$principal" --assignee-principal-type ServicePrincipal \
      --scope "$scope" --role "$role" --output none; then
      break
    elif [ "$attempt" -eq 6 ]; then
      echo "the role \"$role\" on $scope could not be given to $principal" >&2
      exit 1
    fi
    sleep 10
  done
done

echo "cluster $cluster is ready; next: configure-values.sh $cluster $group $account $identity"
