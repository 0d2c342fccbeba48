"""What stands before moto: services that it does not have, a look inside for tests, and the recorder.

    GET  /karpenter/state     instances, images, launch templates and instance profiles, as JSON
    POST /karpenter/message   puts the body into the interruption queue
"""

import io
import json
import re
import threading
from urllib.parse import parse_qsl, unquote

ACCOUNT = "123456789012"
# Virtual processors of usual machines: by use, and spot.
QUOTAS = {
    "L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "L-34B43A08": "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
}
ERROR_CODE = re.compile(rb"<Code>([^<]+)</Code>|\"__type\":\s*\"(?:[^\"#]*#)?([^\"]+)\"")
SCOPE = re.compile(r"Credential=[^/]+/[^/]+/([^/]+)/([^/]+)/")


def nested(pairs):
    """`A.1.B=x` as {"A": [{"B": "x"}]}: what the query protocol sends, readable."""
    tree = {}
    for key, value in pairs:
        *path, last = key.split(".")
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node[last] = value
    return listed(tree)


def listed(node):
    if not isinstance(node, dict):
        return node
    if node and all(key.isdigit() for key in node):
        return [listed(node[key]) for key in sorted(node, key=int)]
    # IAM and STS write lists as `Tags.member.1`.
    if list(node) == ["member"]:
        return listed(node["member"])
    return {key: listed(value) for key, value in node.items()}


class Front:
    def __init__(self, moto, region):
        self.moto = moto
        self.region = region
        self.queue = None
        self.record = None
        self.lock = threading.Lock()

    def record_to(self, path):
        self.record = open(path, "a", encoding="utf-8")

    def __call__(self, environ, start_response):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        environ["wsgi.input"] = io.BytesIO(body)
        path = environ.get("PATH_INFO", "")
        if path.startswith("/karpenter/"):
            return self.own(path, body, start_response)

        scope = SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
        service = scope.group(2) if scope else ""
        status = {}

        def started(line, headers, *rest):
            status["line"] = line
            return start_response(line, headers, *rest)

        if service == "pricing":
            answer = self.json(started, {"FormatVersion": "aws_v1", "PriceList": []})
        elif service == "servicequotas":
            quotas = [{"QuotaCode": code, "QuotaName": name, "Value": 640.0} for code, name in QUOTAS.items()]
            answer = self.json(started, {"Quotas": quotas})
        elif service == "arc-zonal-shift":
            name = unquote(path.rsplit("/managedresources/", 1)[-1])
            answer = self.json(
                started,
                {"arn": name, "name": name, "appliedWeights": {}, "autoshifts": [], "zonalShifts": []},
            )
        else:
            answer = [b"".join(self.moto(environ, started))]
        if self.record:
            self.note(service, environ, body, status.get("line", ""), answer[0])
        return answer

    def note(self, service, environ, body, status, answer):
        target = environ.get("HTTP_X_AMZ_TARGET")
        content_type = environ.get("CONTENT_TYPE", "")
        if target:
            action, parameters = target.rsplit(".", 1)[-1], json.loads(body or b"{}")
        elif content_type.startswith("application/x-www-form-urlencoded"):
            parameters = nested(parse_qsl(body.decode(), keep_blank_values=True))
            action = parameters.pop("Action", "")
            parameters.pop("Version", None)
        else:
            action = f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"
            parameters = json.loads(body) if body else {}
        code = int(status.split(" ", 1)[0] or 0)
        line = {"service": service, "action": action, "parameters": parameters, "status": code}
        if code < 300 and service == "ssm":
            line["answer"] = json.loads(answer)["Parameter"]["Value"]
        if code >= 300:
            found = ERROR_CODE.search(answer)
            line["error"] = next((each.decode() for each in found.groups() if each), "") if found else ""
        with self.lock:
            self.record.write(json.dumps(line) + "\n")
            self.record.flush()

    def json(self, start_response, value, status="200 OK"):
        body = json.dumps(value).encode()
        headers = [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(body)))]
        start_response(status, headers)
        return [body]

    def own(self, path, body, start_response):
        if path == "/karpenter/state":
            return self.json(start_response, self.looked_at())
        if path == "/karpenter/message":
            from moto.sqs.models import sqs_backends

            name = self.queue.rsplit("/", 1)[-1]
            sqs_backends[ACCOUNT][self.region].send_message(name, body.decode())
            return self.json(start_response, {})
        return self.json(start_response, {"unknown": path}, "404 Not Found")

    def looked_at(self):
        # Others change what is looked at meanwhile, which Python does not like.
        for _ in range(100):
            try:
                return self.state()
            except RuntimeError:
                continue
        return self.state()

    def state(self):
        from moto.ec2.models import ec2_backends
        from moto.iam.models import iam_backends

        ec2 = ec2_backends[ACCOUNT][self.region]
        iam = iam_backends[ACCOUNT]["aws"]
        plain = lambda pairs: {each["key"]: each["value"] for each in pairs}  # noqa: E731
        return {
            "instances": [
                {
                    "id": each.id,
                    "state": each.state,
                    "type": each.instance_type,
                    "zone": each.availability_zone,
                    "subnet": each.subnet_id,
                    "image": each.image_id,
                    "securityGroups": sorted(group.id for group in each.security_groups),
                    "profile": (each.iam_instance_profile or {}).get("Arn", ""),
                    "spotRequest": getattr(each, "spot_instance_request_id", None),
                    "privateDnsName": each.private_dns_name,
                    "userData": each.user_data.decode() if each.user_data else "",
                    "tags": plain(each.get_tags()),
                }
                for each in ec2.all_instances()
            ],
            "images": [
                {"id": each.id, "name": each.name, "architecture": each.architecture}
                for each in list(ec2.amis.values())
            ],
            "launchTemplates": [
                {"id": each.id, "name": each.name, "tags": plain(each.get_tags())}
                for each in list(ec2.launch_templates.values())
            ],
            "instanceProfiles": [
                {"name": each.name, "path": each.path, "roles": [role.name for role in each.roles]}
                for each in list(iam.instance_profiles.values())
            ],
        }
