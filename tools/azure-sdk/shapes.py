"""Compares what our Azure for tests reads with the types of Microsoft's SDK: every member that it reads must be one of
theirs, and what theirs have and it does not is listed below with the reason.

    shapes.py shapes.json
"""

import json
import sys

from azure.mgmt.compute import models as compute
from azure.mgmt.containerservice import models as kubernetes
from azure.mgmt.network import models as network

# Shapes, or parts of shapes, with the types that they are.
PAIRS = [
    ("SubResource", network.SubResource),
    ("Plan", compute.Plan),
    ("ExtendedLocation", compute.ExtendedLocation),
    ("Identity", compute.VirtualMachineIdentity),
    ("VirtualMachine", compute.VirtualMachine),
    ("VirtualMachineUpdate", compute.VirtualMachineUpdate),
    ("VirtualMachineProperties", compute.VirtualMachineProperties),
    ("VirtualMachineProperties/hardwareProfile", compute.HardwareProfile),
    ("VirtualMachineProperties/hardwareProfile/vmSizeProperties", compute.VMSizeProperties),
    ("VirtualMachineProperties/storageProfile", compute.StorageProfile),
    ("VirtualMachineProperties/storageProfile/imageReference", compute.ImageReference),
    ("VirtualMachineProperties/storageProfile/osDisk", compute.OSDisk),
    ("VirtualMachineProperties/storageProfile/osDisk/diffDiskSettings", compute.DiffDiskSettings),
    ("VirtualMachineProperties/storageProfile/osDisk/managedDisk", compute.ManagedDiskParameters),
    ("VirtualMachineProperties/storageProfile/osDisk/managedDisk/securityProfile", compute.VMDiskSecurityProfile),
    ("VirtualMachineProperties/additionalCapabilities", compute.AdditionalCapabilities),
    ("VirtualMachineProperties/osProfile", compute.OSProfile),
    ("VirtualMachineProperties/osProfile/linuxConfiguration", compute.LinuxConfiguration),
    ("VirtualMachineProperties/osProfile/linuxConfiguration/ssh", compute.SshConfiguration),
    ("VirtualMachineProperties/osProfile/linuxConfiguration/ssh/publicKeys/0", compute.SshPublicKey),
    ("VirtualMachineProperties/networkProfile", compute.NetworkProfile),
    ("VirtualMachineProperties/networkProfile/networkInterfaces/0", compute.NetworkInterfaceReference),
    (
        "VirtualMachineProperties/networkProfile/networkInterfaces/0/properties",
        compute.NetworkInterfaceReferenceProperties,
    ),
    ("VirtualMachineProperties/securityProfile", compute.SecurityProfile),
    ("VirtualMachineProperties/securityProfile/uefiSettings", compute.UefiSettings),
    ("VirtualMachineProperties/diagnosticsProfile", compute.DiagnosticsProfile),
    ("VirtualMachineProperties/diagnosticsProfile/bootDiagnostics", compute.BootDiagnostics),
    ("VirtualMachineProperties/billingProfile", compute.BillingProfile),
    ("VirtualMachineProperties/capacityReservation", compute.CapacityReservationProfile),
    ("Extension", compute.VirtualMachineExtension),
    ("ExtensionUpdate", compute.VirtualMachineExtensionUpdate),
    ("ExtensionProperties", compute.VirtualMachineExtensionProperties),
    ("NetworkInterface", network.NetworkInterface),
    ("NetworkInterface/properties", network.NetworkInterfacePropertiesFormat),
    ("NetworkInterface/properties/dnsSettings", network.NetworkInterfaceDnsSettings),
    ("IpConfiguration", network.NetworkInterfaceIPConfiguration),
    ("IpConfiguration/properties", network.NetworkInterfaceIPConfigurationPropertiesFormat),
    ("TagsObject", network.TagsObject),
    ("Machine", kubernetes.Machine),
    ("Machine/properties", kubernetes.MachineProperties),
    ("Machine/properties/network", kubernetes.MachineNetworkProperties),
    ("Machine/properties/hardware", kubernetes.MachineHardwareProfile),
    ("Machine/properties/hardware/gpuProfile", kubernetes.GPUProfile),
    ("Machine/properties/operatingSystem", kubernetes.MachineOSProfile),
    ("Machine/properties/operatingSystem/linuxProfile", kubernetes.MachineOSProfileLinuxProfile),
    ("Machine/properties/kubernetes", kubernetes.MachineKubernetesProfile),
    ("Machine/properties/kubernetes/artifactStreamingProfile", kubernetes.AgentPoolArtifactStreamingProfile),
    ("Machine/properties/security", kubernetes.MachineSecurityProfile),
    ("Machine/properties/billing", kubernetes.MachineBillingProfile),
    ("LocalDNS", kubernetes.LocalDNSProfile),
    ("DNSOverride", kubernetes.LocalDNSOverride),
    ("KubeletConfig", kubernetes.KubeletConfig),
    ("LinuxOSConfig", kubernetes.LinuxOSConfig),
    ("LinuxOSConfig/sysctls", kubernetes.SysctlConfig),
    ("DeleteMachines", kubernetes.AgentPoolDeleteMachinesParameter),
]
# These types are newer than the API versions that we use.
NEWER = {
    "VirtualMachineProperties": {"flexProfile", "interconnectBlockProfile", "resiliencyProfile"},
    "VirtualMachineProperties/hardwareProfile": {"processorMode"},
    "VirtualMachineProperties/storageProfile": {"diskApiVersion"},
    "VirtualMachineProperties/storageProfile/osDisk": {"storageFaultDomainAlignment"},
    "VirtualMachineProperties/storageProfile/osDisk/managedDisk": {"additionalDiskProperties"},
    "VirtualMachineProperties/networkProfile": {"interconnectGroupProfile"},
    "VirtualMachineProperties/capacityReservation": {"disableCapacityReservationAssignment"},
    "Extension": {"systemData"},
    "NetworkInterface/properties": {"auxiliarySku", "defaultOutboundConnectivityEnabled", "disableTcpStateTracking"},
    "IpConfiguration/properties": {"privateIPAddressPrefixLength"},
    "Machine/properties": {"capacityReservation"},
    "Machine/properties/network": {"podIPAllocationMode"},
    "KubeletConfig": {
        "evictionMaxPodGracePeriodInSeconds",
        "softEvictionGracePeriod",
        "softEvictionThreshold",
    },
}


def part(shapes, path):
    """A part of a shape; names may be marked as required."""
    found = shapes
    for step in path.split("/"):
        if isinstance(found, list):
            found = found[int(step)]
        else:
            found = found.get(step, found.get(step + "!"))
    return found


def members(model):
    # What a type has is worked out when the first object is made.
    model({})
    return {field._rest_name for field in model._attr_to_rest_field.values()}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        shapes = json.load(file)
    problems = []
    for path, model in PAIRS:
        shape = part(shapes, path)
        if shape is None:
            problems.append(f"there is no shape {path}")
            continue
        ours = {name.rstrip("!") for name in shape}
        theirs = members(model)
        problems += [f"{path}: Microsoft's {model.__name__} has no {name}" for name in sorted(ours - theirs)]
        missing = theirs - ours - NEWER.get(path, set())
        problems += [f"{path}: Microsoft's {model.__name__} also has {name}" for name in sorted(missing)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
