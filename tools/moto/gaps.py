"""What moto 5.2.5 does otherwise than EC2, IAM and SSM where it matters to us, put right without touching the package.

Each function replaces a method of one of moto's classes by one that first or afterwards calls the original.
"""

import datetime
import functools
import hashlib
import re

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, InvalidLaunchTemplateNameNotFoundError
from moto.ec2.models import EC2Backend
from moto.ec2.models.amis import Ami
from moto.ec2.models.instances import MetadataOptions
from moto.ec2.responses import EC2Response
from moto.ec2.utils import convert_tag_spec
from moto.iam.exceptions import NotFoundException
from moto.iam.models import IAMBackend
from moto.iam.responses import IamResponse
from moto.ssm.models import Parameter, SimpleSystemManagerBackend

# Which published parameters name images, and what of their path is the image's name.
IMAGES = re.compile(
    r"^/aws/service/(?:eks/optimized-ami/(?P<eks>.+)|bottlerocket/(?P<bottlerocket>aws-k8s-.+)"
    r"|ami-windows-latest/(?P<windows>Windows_Server-.+))/image_id$"
)
# Fixed, so that the order of images is the same every time.
PUBLISHED = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def around(owner, name):
    """Replaces a method by one that is given the original first."""

    def replace(function):
        original = getattr(owner, name, None)

        @functools.wraps(original or function)
        def replaced(self, *arguments, **named):
            return function(original, self, *arguments, **named)

        setattr(owner, name, replaced)
        return function

    return replace


def close():
    images()
    fleets()
    instances()
    launch_templates()
    reservations()
    profiles()


def images():
    @around(SimpleSystemManagerBackend, "get_parameter")
    def get_parameter(original, self, name):
        match = IMAGES.match(name)
        if not match:
            return original(self, name)
        image = image_of(self.account_id, self.region_name, next(filter(None, match.groups())))
        return Parameter(
            account_id=self.account_id,
            name=name,
            value=image,
            parameter_type="String",
            description=None,
            allowed_pattern=None,
            keyid=None,
            last_modified_date=PUBLISHED,
            version=1,
            data_type="text",
        )


def image_of(account, region, path):
    """The image that a published parameter names; there is one for every path."""
    from moto.ec2.models import ec2_backends

    backend = ec2_backends[account][region]
    identifier = f"ami-{hashlib.sha256(path.encode()).hexdigest()[:17]}"
    if identifier not in backend.amis:
        words = [word for word in path.split("/") if word not in ("recommended", "latest")]
        is_windows = path.startswith("Windows")
        backend.amis[identifier] = Ami(
            backend,
            identifier,
            name=("bottlerocket-" if path.startswith("aws-k8s") else "") + "-".join(words),
            owner_id="602401143452",
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture="arm64" if "arm64" in path else "x86_64",
            platform="windows" if is_windows else None,
            creation_date=PUBLISHED,
            region_name=region,
        )
    return identifier


def fleets():
    @around(EC2Backend, "create_fleet")
    def create_fleet(original, self, **named):
        fleet = original(self, **named)
        launched = [(each["instance"], each["launch_spec"], None) for each in fleet.on_demand_instances]
        launched += [(each.instance, each.launch_spec, each.id) for each in fleet.spot_requests]
        volume_tags = convert_tag_spec(named["tag_specifications"]).get("volume", {})
        for instance, specification, request in launched:
            template = self.get_launch_template(specification.launch_template_spec["LaunchTemplateId"])
            version = template.get_version(specification.launch_template_spec["Version"])
            instance.spot_instance_request_id = request
            instance.add_tags(
                {
                    "aws:ec2launchtemplate:id": template.id,
                    "aws:ec2launchtemplate:version": str(version.number),
                    "aws:ec2:fleet-id": fleet.id,
                }
            )
            use_template(self, instance, version.data, volume_tags)
        return fleet


def use_template(backend, instance, data, volume_tags):
    """Gives an instance what moto leaves out of its launch template."""
    for interface in data.get("NetworkInterfaces", []):
        if int(interface.get("DeviceIndex", 0)) == 0:
            groups = [backend.get_security_group_from_id(each) for each in interface.get("Groups", [])]
            instance.security_groups = groups
            instance.nics[0]._group_set = groups
    interface_tags = convert_tag_spec(data.get("TagSpecifications", [])).get("network-interface", {})
    for interface in instance.nics.values():
        interface.add_tags(interface_tags)
    profile = data.get("IamInstanceProfile", {}).get("Name")
    if profile:
        backend.associate_iam_instance_profile(instance.id, iam_instance_profile_name=profile)
    if data.get("BlockDeviceMappings"):
        instance.teardown_defaults()
    for mapping in data.get("BlockDeviceMappings", []):
        volume = mapping.get("Ebs", {})
        made = backend.create_volume(
            size=volume.get("VolumeSize"),
            zone_name=instance.availability_zone,
            snapshot_id=volume.get("SnapshotId"),
            encrypted=volume.get("Encrypted", False),
            kms_key_id=volume.get("KmsKeyId"),
            volume_type=volume.get("VolumeType"),
            iops=volume.get("Iops"),
            throughput=volume.get("Throughput"),
        )
        ends = volume.get("DeleteOnTermination", True)
        backend.attach_volume(made.id, instance.id, mapping["DeviceName"], ends)
    for _, device in instance.get_block_device_mapping:
        for volume in backend.describe_volumes(volume_ids=[device.volume_id]):
            volume.add_tags(volume_tags)
    if data.get("MetadataOptions"):
        instance.metadata_options = MetadataOptions(data["MetadataOptions"])
    if data.get("Monitoring", {}).get("Enabled"):
        instance.monitoring_state = "enabled"
    instance.placement.tenancy = data.get("Placement", {}).get("Tenancy") or "default"


def instances():
    @around(EC2Backend, "run_instances")
    def run_instances(original, self, *arguments, **named):
        reservation = original(self, *arguments, **named)
        for each in reservation.instances:
            if each.subnet_id:
                zone = self.get_subnet(each.subnet_id).availability_zone_id
                each.placement.availability_zone_id = zone
        return reservation

    @around(EC2Response, "describe_instance_types")
    def describe_instance_types(original, self):
        self.error_on_dryrun()
        return original(self)

    @around(EC2Response, "describe_instance_status")
    def describe_instance_status(original, self):
        found = original(self).result["InstanceStatuses"]
        for name, values in self._filters_from_querystring().items():
            if name == "instance-status.status":
                found = [each for each in found if each.instance_status["Status"] in values]
            elif name == "system-status.status":
                found = [each for each in found if each.system_status["Status"] in values]
            elif name.startswith("event."):
                # Nothing is ever planned.
                found = []
        return ActionResult({"InstanceStatuses": found})

    @around(EC2Response, "create_tags")
    def create_tags(original, self):
        for resource in self._get_param("Resources", []):
            if resource.startswith("i-"):
                self.ec2_backend.get_instance(resource)
        return original(self)


def launch_templates():
    @around(EC2Backend, "delete_launch_template")
    def delete_launch_template(original, self, name, tid):
        if name and name not in self.launch_template_name_to_ids:
            raise InvalidLaunchTemplateNameNotFoundError()
        return original(self, name, tid)


def reservations():
    @around(EC2Response, "describe_capacity_reservations")
    def describe_capacity_reservations(_, self):
        for each in self._get_param("CapacityReservationIds", []):
            code = "InvalidCapacityReservationId.NotFound"
            raise EC2ClientError(code, f"The capacity reservation '{each}' does not exist")
        return ActionResult({"CapacityReservations": []})

    @around(EC2Response, "describe_placement_groups")
    def describe_placement_groups(_, self):
        for each in self._get_param("GroupNames", []) + self._get_param("GroupIds", []):
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{each}' is unknown.")
        return ActionResult({"PlacementGroups": []})


def profiles():
    @around(IamResponse, "list_instance_profiles")
    def list_instance_profiles(original, self):
        prefix = self._get_param("PathPrefix") or "/"
        found = original(self).result["InstanceProfiles"]
        return ActionResult({"InstanceProfiles": [each for each in found if each.path.startswith(prefix)]})

    @around(IAMBackend, "get_role")
    def get_role(original, self, role_name):
        try:
            return original(self, role_name)
        except NotFoundException:
            raise NotFoundException(f"The role with name {role_name} cannot be found.") from None
