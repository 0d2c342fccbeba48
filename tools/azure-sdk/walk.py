"""Microsoft's own SDK as a client of the Azure of our tests: what it sends must be understood, and what it is told must be
what its types say.

    walk.py --url http://127.0.0.1:1234 --settings '{"subscription": …}'

It ends with 0 when everything was as expected, and prints what was not.
"""

import argparse
import json
import sys

from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resourcegraph import ResourceGraphClient
from azure.mgmt.resourcegraph import models as graph_models

IMAGE = (
    "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202606.01.0"
)
GALLERY = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2"
TAGS = {"karpenter.sh_nodepool": "general-purpose"}
problems = []


def check(what, expected, found):
    if expected != found:
        problems.append(f"{what}: expected {expected!r}, found {found!r}")


class Credential:
    def get_token(self, *scopes, **named):
        return AccessToken("token", 4102444800)


class Bearer(SansIOHTTPPolicy):
    """The SDK's own policy refuses to send tokens without TLS."""

    def on_request(self, request):
        request.http_request.headers["Authorization"] = "Bearer token"


def client(kind, url, *arguments, **named):
    return kind(
        Credential(),
        *arguments,
        base_url=url,
        credential_scopes=[url + "/.default"],
        authentication_policy=Bearer(),
        polling_interval=0,
        **named,
    )


class Walk:
    def __init__(self, url, settings):
        self.settings = settings
        self.group = settings["nodeResourceGroup"]
        self.location = settings["location"]
        subscription = settings["subscription"]
        self.compute = client(ComputeManagementClient, url, subscription)
        self.network = client(NetworkManagementClient, url, subscription)
        self.kubernetes = client(ContainerServiceClient, url, subscription)
        self.graph = client(ResourceGraphClient, url)

    def all(self):
        self.catalogue()
        self.surroundings()
        interface = self.interface()
        self.machine(interface)
        self.found_in_the_graph()
        self.tags()
        self.refusals(interface)
        self.end()
        self.aks_machines()

    def catalogue(self):
        skus = list(self.compute.resource_skus.list(filter=f"location eq '{self.location}'"))
        check("sizes", 20, len(skus))
        sku = next(each for each in skus if each.name == "Standard_D2s_v3")
        check("zones of a size", ["1", "2", "3"], sorted(sku.location_info[0].zones))
        check("cores of a size", "2", next(each.value for each in sku.capabilities if each.name == "vCPUs"))
        usages = {each.name.value: each for each in self.compute.usage.list(self.location)}
        check("a family has a limit", True, usages["standardDSv3Family"].limit > 0)
        check("nothing is used", 0, usages["cores"].current_value)
        versions = self.compute.community_gallery_image_versions.list(self.location, GALLERY, "2204gen2containerd")
        check("versions of an image", ["202605.15.0", "202606.01.0"], [each.name for each in versions])

    def surroundings(self):
        groups = list(self.network.network_security_groups.list(self.group))
        check("security groups", ["aks-agentpool-12345678-nsg"], [each.name for each in groups])
        balancers = {each.name: each for each in self.network.load_balancers.list(self.group)}
        pools = [each.name for each in balancers["kubernetes"].backend_address_pools]
        check("pools of a load balancer", ["aksOutboundBackendPool", "kubernetes"], pools)
        network = self.network.virtual_networks.get(self.group, "aks-vnet-12345678")
        check("a network", "a519e60a-cac0-40b2-b883-084477fe6f5c", network.resource_guid)
        subnet = self.network.subnets.get(self.group, "aks-vnet-12345678", "aks-subnet")
        check("a subnet", "10.224.0.0/16", subnet.address_prefix)
        self.subnet = subnet.id
        missing("a subnet that is not there", lambda: self.network.subnets.get(self.group, "aks-vnet-12345678", "none"))

    def interface(self):
        interface = self.network.network_interfaces.begin_create_or_update(
            self.group,
            "aks-a",
            {
                "location": self.location,
                "tags": TAGS,
                "properties": {
                    "ipConfigurations": [
                        {
                            "name": "aks-a",
                            "properties": {
                                "primary": True,
                                "privateIPAllocationMethod": "Dynamic",
                                "subnet": {"id": self.subnet},
                            },
                        }
                    ],
                    "enableAcceleratedNetworking": True,
                    "enableIPForwarding": False,
                },
            },
        ).result()
        check("state of an interface", "Succeeded", interface.provisioning_state)
        check("tags of an interface", TAGS, interface.tags)
        check("address of an interface", "10.224.0.4", interface.ip_configurations[0].private_ip_address)
        return interface.id

    def machine_body(self, interface, size="Standard_D2s_v3"):
        return {
            "location": self.location,
            "tags": TAGS,
            "zones": ["1"],
            "identity": {"type": "UserAssigned", "userAssignedIdentities": {"/identity": {}}},
            "properties": {
                "hardwareProfile": {"vmSize": size},
                "storageProfile": {
                    "imageReference": {"communityGalleryImageId": IMAGE},
                    "osDisk": {
                        "name": "aks-a",
                        "diskSizeGB": 40,
                        "createOption": "FromImage",
                        "deleteOption": "Delete",
                        "caching": "ReadOnly",
                        "diffDiskSettings": {"option": "Local", "placement": "CacheDisk"},
                    },
                },
                "osProfile": {
                    "adminUsername": "azureuser",
                    "computerName": "aks-a",
                    "customData": "c2VjcmV0",
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": True,
                        "ssh": {"publicKeys": [{"keyData": "ssh-rsa a", "path": "/home/azureuser/.ssh/authorized_keys"}]},
                    },
                },
                "networkProfile": {
                    "networkInterfaces": [{"id": interface, "properties": {"primary": True, "deleteOption": "Delete"}}]
                },
                "priority": "Spot",
                "evictionPolicy": "Delete",
                "billingProfile": {"maxPrice": -1},
                "securityProfile": {
                    "encryptionAtHost": True,
                    "securityType": "TrustedLaunch",
                    "uefiSettings": {"secureBootEnabled": True, "vTpmEnabled": True},
                },
            },
        }

    def machine(self, interface):
        machines = self.compute.virtual_machines
        missing("a machine that is not there", lambda: machines.get(self.group, "aks-a"))
        machine = machines.begin_create_or_update(self.group, "aks-a", self.machine_body(interface)).result()
        check("state of a machine", "Succeeded", machine.provisioning_state)
        check("size of a machine", "Standard_D2s_v3", machine.hardware_profile.vm_size)
        check("priority of a machine", "Spot", machine.priority)
        check("zones of a machine", ["1"], machine.zones)
        check("when a machine was made", True, machine.time_created is not None)
        check("secrets of a machine", None, machine.os_profile.custom_data)
        check("identities of a machine", ["/identity"], list(machine.identity.user_assigned_identities))
        extension = self.compute.virtual_machine_extensions.begin_create_or_update(
            self.group,
            "aks-a",
            "computeAksLinuxBilling",
            {
                "location": self.location,
                "tags": TAGS,
                "properties": {
                    "publisher": "Microsoft.AKS",
                    "type": "Compute.AKS.Linux.Billing",
                    "typeHandlerVersion": "1.0",
                    "autoUpgradeMinorVersion": True,
                    "settings": {},
                },
            },
        ).result()
        check("state of an extension", "Succeeded", extension.provisioning_state)

    def found_in_the_graph(self):
        query = (
            'Resources | where type == "microsoft.compute/virtualmachines" '
            f'| where resourceGroup == "{self.group.lower()}" '
            '| where tags has_cs "karpenter.sh_nodepool" '
            '| where not(tags has_cs "karpenter.azure.com_aksmachine_nodeclaim")'
        )
        request = graph_models.QueryRequest(
            subscriptions=[self.settings["subscription"]],
            query=query,
            options=graph_models.QueryRequestOptions(result_format="objectArray"),
        )
        answer = self.graph.resources(request)
        check("machines in the graph", ["aks-a"], [row["name"] for row in answer.data])
        check("rows that the graph counts", (1, 1), (answer.count, answer.total_records))

    def tags(self):
        tags = {**TAGS, "new": "tag"}
        interface = self.network.network_interfaces.update_tags(self.group, "aks-a", {"tags": tags})
        check("new tags of an interface", tags, interface.tags)
        extension = self.compute.virtual_machine_extensions.begin_update(
            self.group, "aks-a", "computeAksLinuxBilling", {"tags": tags}
        ).result()
        check("new tags of an extension", tags, extension.tags)
        change = {
            "tags": tags,
            "identity": {"type": "UserAssigned", "userAssignedIdentities": {"/other": {}}},
        }
        machine = self.compute.virtual_machines.begin_update(self.group, "aks-a", change).result()
        check("new tags of a machine", tags, machine.tags)
        check("added identities", ["/identity", "/other"], sorted(machine.identity.user_assigned_identities))

    def refusals(self, interface):
        machines = self.compute.virtual_machines
        body = self.machine_body(interface)
        body["zones"] = ["2"]
        refused(
            "another zone", 409, "PropertyChangeNotAllowed", lambda: machines.begin_create_or_update(self.group, "aks-a", body)
        )
        body = self.machine_body(interface + "x")
        refused(
            "an interface that is not there",
            400,
            "InvalidResourceReference",
            lambda: machines.begin_create_or_update(self.group, "aks-b", body),
        )
        refused(
            "an interface that is used",
            400,
            "NicInUse",
            lambda: self.network.network_interfaces.begin_delete(self.group, "aks-a"),
        )
        missing(
            "a disk encryption set that is not there", lambda: self.compute.disk_encryption_sets.get(self.group, "none")
        )

    def end(self):
        machines = self.compute.virtual_machines
        check("what a deletion tells", None, machines.begin_delete(self.group, "aks-a", force_deletion=True).result())
        missing("a machine that is gone", lambda: machines.get(self.group, "aks-a"))
        missing(
            "an interface that went with its machine", lambda: self.network.network_interfaces.get(self.group, "aks-a")
        )

    def aks_machines(self):
        cluster_group, cluster, pool = (
            self.settings["clusterResourceGroup"],
            self.settings["cluster"],
            self.settings["machinesPool"],
        )
        found = self.kubernetes.managed_clusters.get(cluster_group, cluster)
        check("where nodes are", self.group, found.node_resource_group)
        machines = self.kubernetes.machines
        check("no machines", [], list(machines.list(cluster_group, cluster, pool)))
        missing("a pool that is not there", lambda: list(machines.list(cluster_group, cluster, "none")))
        body = {
            "zones": ["1"],
            "properties": {
                "hardware": {"vmSize": "Standard_D2s_v3"},
                "operatingSystem": {"osType": "Linux", "osSKU": "Ubuntu2204", "osDiskSizeGB": 128},
                "kubernetes": {"nodeLabels": {"a": "b"}, "nodeTaints": []},
                "mode": "User",
                "priority": "Regular",
                "tags": TAGS,
            },
        }
        made = machines.begin_create_or_update(cluster_group, cluster, pool, "claim", body).result()
        check("state of an AKS machine", "Succeeded", made.properties.provisioning_state)
        check("tag of an AKS machine", True, bool(made.properties.e_tag))
        check("when an AKS machine was made", True, made.properties.status.creation_timestamp is not None)
        check("AKS machines", ["claim"], [each.name for each in machines.list(cluster_group, cluster, pool)])
        pools = self.kubernetes.agent_pools
        pools.begin_delete_machines(cluster_group, cluster, pool, {"machineNames": ["claim"]}).result()
        missing("an AKS machine that is gone", lambda: machines.get(cluster_group, cluster, pool, "claim"))


def missing(what, ask):
    try:
        ask()
        problems.append(f"{what}: expected an error, found none")
    except ResourceNotFoundError as error:
        check(f"status of {what}", 404, error.status_code)
        check(f"code of {what}", True, bool(error.error and error.error.code))


def refused(what, status, code, ask):
    try:
        ask()
        problems.append(f"{what}: expected an error, found none")
    except HttpResponseError as error:
        check(f"status of {what}", status, error.status_code)
        check(f"code of {what}", code, error.error.code)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--settings", type=json.loads, required=True)
    arguments = parser.parse_args()
    Walk(arguments.url, arguments.settings).all()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
