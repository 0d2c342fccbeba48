"""Starts the moto server on loopback, closes what it lacks for us, and fills it with what a cluster needs.

    python launch.py --port 5000 --cluster NAME --region us-east-1 --kubernetes 1.36 --ready FILE [--record FILE]

FILE of --ready appears when everything is there and says what was made. With --record, every request after that is
kept as one line of JSON. Beside AWS, the server answers on /karpenter/: see front.py.
"""

import argparse
import json
import os
import threading

# Before moto is imported: its own images take seconds to load, and ours come from gaps.py.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")

import boto3  # noqa: E402
from moto.moto_api._internal import mock_random  # noqa: E402
from moto.moto_server.werkzeug_app import (  # noqa: E402
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server  # noqa: E402

import gaps  # noqa: E402
from front import Front  # noqa: E402

HOST = "127.0.0.1"
DISCOVERY = "karpenter.sh/discovery"


def tags(resource_type, name, cluster):
    pairs = [{"Key": "Name", "Value": name}]
    if cluster:
        pairs.append({"Key": DISCOVERY, "Value": cluster})
    return [{"ResourceType": resource_type, "Tags": pairs}]


def seed(url, cluster, region, kubernetes):
    """Makes a network, a role, a cluster and a queue, and says what they are called."""

    def client(service):
        return boto3.client(service, region_name=region, endpoint_url=url)

    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.100.0.0/16")["Vpc"]["VpcId"]

    def subnet(block, zone, name, owner):
        made = ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=block,
            AvailabilityZone=zone,
            TagSpecifications=tags("subnet", name, owner),
        )["Subnet"]
        return {
            "id": made["SubnetId"],
            "zone": made["AvailabilityZone"],
            "zoneId": made["AvailabilityZoneId"],
        }

    def group(name, owner):
        made = ec2.create_security_group(
            GroupName=name,
            Description=name,
            VpcId=vpc,
            TagSpecifications=tags("security-group", name, owner),
        )
        return {"id": made["GroupId"], "name": name}

    subnets = [
        subnet("10.100.0.0/18", f"{region}a", f"{cluster}-a", cluster),
        subnet("10.100.64.0/18", f"{region}b", f"{cluster}-b", cluster),
    ]
    groups = [group(f"{cluster}-node", cluster), group(f"{cluster}-shared", cluster)]
    # Nobody selects these.
    subnet("10.100.128.0/18", f"{region}a", "other", None)
    group("other", None)

    role = f"KarpenterNodeRole-{cluster}"
    profile = f"KarpenterNodeInstanceProfile-{cluster}"
    iam = client("iam")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName=profile)
    iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=role)
    # An image comes into being when it is asked for; selectors by name need one that is there already.
    path = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/x86_64/standard/recommended/image_id"
    client("ssm").get_parameter(Name=path)
    made = client("eks").create_cluster(
        name=cluster,
        version=kubernetes,
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={"subnetIds": [each["id"] for each in subnets]},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "10.0.0.0/16"},
    )["cluster"]
    sender = {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage"}
    policy = {"Version": "2012-10-17", "Statement": [{**sender, "Resource": "*"}]}
    attributes = {"MessageRetentionPeriod": "300", "Policy": json.dumps(policy)}
    queue = client("sqs").create_queue(QueueName=cluster, Attributes=attributes)["QueueUrl"]
    return {
        "cluster": cluster,
        "clusterArn": made["arn"],
        "region": region,
        "subnets": subnets,
        "securityGroups": groups,
        "role": role,
        "instanceProfile": profile,
        "queue": cluster,
        "queueUrl": queue,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--kubernetes", required=True)
    parser.add_argument("--ready", required=True)
    parser.add_argument("--record")
    arguments = parser.parse_args()

    gaps.close()
    # What is made at the start has the same IDs every time, those of subnets in the order of their zones.
    mock_random.seed(4)
    front = Front(DomainDispatcherApplication(create_backend_app), arguments.region)
    server = make_server(HOST, arguments.port, front, threaded=True, request_handler=MotoRequestHandler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    url = f"http://{HOST}:{arguments.port}"
    made = seed(url, arguments.cluster, arguments.region, arguments.kubernetes)
    front.queue = made["queueUrl"]
    if arguments.record:
        front.record_to(arguments.record)
    # Whoever waits for the file sees all of it or nothing.
    with open(f"{arguments.ready}.partial", "w", encoding="utf-8") as ready:
        json.dump(made, ready)
    os.rename(f"{arguments.ready}.partial", arguments.ready)
    serving.join()


if __name__ == "__main__":
    main()
