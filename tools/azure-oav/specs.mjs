// Microsoft's specification of what we ask of Azure, as Swagger 2.0.
//
// No package carries the specifications of the API versions that we use. Microsoft's SDKs for JavaScript of just these
// versions do carry all that was generated from them: paths, parameters, statuses, and for each body its members with
// their types. It is read from the SDKs themselves, by calling every operation of a client that sends nothing.

const GROUPS = {
  compute: ["virtualMachines", "virtualMachineExtensions", "resourceSkus", "usageOperations", "diskEncryptionSets",
    "communityGalleryImageVersions"],
  containerservice: ["managedClusters", "agentPools"],
  network: ["networkInterfaces", "networkSecurityGroups", "loadBalancers", "virtualNetworks", "subnets"],
};

// The SDK takes these four for whatever takes long; the specifications of all such operations that we use have these.
const STATUSES = { PUT: [200, 201], PATCH: [200], DELETE: [200, 202, 204] };

/** One document for each service and API version; packages are found by `require`. */
export async function specifications(require) {
  const { ComputeManagementClient } = require("@azure/arm-compute");
  const { ContainerServiceClient } = require("@azure/arm-containerservice");
  const { NetworkManagementClient } = require("@azure/arm-network");
  const nobody = { getToken: async () => null };
  const services = [
    ["compute", ComputeManagementClient], ["containerservice", ContainerServiceClient], ["network", NetworkManagementClient],
  ];
  const documents = [];
  for (const [service, Client] of services) {
    const byVersion = new Map();
    for (const operation of await operations(new Client(nobody, "subscription"), GROUPS[service])) {
      const version = operation.spec.queryParameters.find((each) => each.mapper.serializedName === "api-version");
      const key = version.mapper.defaultValue;
      byVersion.set(key, [...(byVersion.get(key) ?? []), operation]);
    }
    for (const [version, all] of byVersion) documents.push(document(service, version, all));
  }
  return documents;
}

/** What a client would send, for each operation of some of its groups. */
async function operations(client, groups) {
  const found = [];
  let name;
  client.sendOperationRequest = async (_arguments, spec) => {
    // Further pages have the address that the first one names.
    if (!spec.path.startsWith("{")) found.push({ name, spec, isLong: name.includes("begin") });
    throw new Error("nothing is sent");
  };
  for (const group of groups) {
    for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(client[group]))) {
      if (method === "constructor" || method.includes("Paging") || method.endsWith("AndWait")) continue;
      name = `${group}_${method}`;
      try {
        await client[group][method]("a", "b", "c", "d", "e");
      } catch {
        // That nothing is sent, or that it makes no sense with such arguments.
      }
    }
  }
  return found;
}

function document(service, version, all) {
  const definitions = {};
  const paths = {};
  for (const { name, spec, isLong } of all) {
    const convert = (mapper) => schema(mapper, definitions, spec.serializer);
    const responses = {};
    for (const [status, answer] of Object.entries(spec.responses)) {
      const isMeant = !isLong || !(spec.httpMethod in STATUSES) || status === "default"
        || STATUSES[spec.httpMethod].includes(Number(status));
      if (isMeant) responses[status] = { description: "", ...(answer.bodyMapper && { schema: convert(answer.bodyMapper) }) };
    }
    const parameters = [
      ...spec.urlParameters.filter((each) => each.parameterPath !== "$host").map((each) => parameter(each, "path")),
      ...(spec.queryParameters ?? []).map((each) => parameter(each, "query")),
    ];
    if (spec.requestBody) {
      const body = spec.requestBody.mapper;
      parameters.push({ name: "body", in: "body", required: body.required === true, schema: convert(body) });
    }
    (paths[spec.path] ??= {})[spec.httpMethod.toLowerCase()] = {
      operationId: name.replace(/_(begin|_)/, "_"), consumes: ["application/json"], produces: ["application/json"],
      parameters, responses, ...(isLong && { "x-ms-long-running-operation": true }),
    };
  }
  const info = { title: service, version };
  return { swagger: "2.0", info, host: "management.azure.com", schemes: ["https"], paths, definitions };
}

function parameter({ mapper }, place) {
  const type = { Number: "number", Boolean: "boolean" }[mapper.type.name] ?? "string";
  const required = place === "path" || mapper.required === true;
  return { name: mapper.serializedName, in: place, required, type };
}

/** What a mapper of the SDK says about a value. */
function schema(mapper, definitions, serializer) {
  const inside = (each) => schema(each, definitions, serializer);
  const { type } = mapper;
  const said = { ...(mapper.readOnly && { readOnly: true }), ...(mapper.nullable && { "x-nullable": true }) };
  switch (type.name) {
    case "Composite": {
      const name = type.className;
      if (!(name in definitions)) {
        definitions[name] = {};
        Object.assign(definitions[name], object(serializer.modelMappers[name] ?? mapper, inside));
      }
      return { $ref: `#/definitions/${name}`, ...said };
    }
    case "Sequence":
      return { type: "array", items: inside(type.element), ...said };
    case "Dictionary":
      return { type: "object", additionalProperties: inside(type.value), ...said };
    case "Enum":
      return { type: "string", enum: type.allowedValues, ...said };
    case "String": case "TimeSpan": case "ByteArray": case "Base64Url": case "Uuid":
      return { type: "string", ...constraints(mapper), ...said };
    case "DateTime":
      return { type: "string", format: "date-time", ...said };
    case "Date": case "DateTimeRfc1123":
      return { type: "string", ...said };
    case "Number": case "UnixTime":
      return { type: "number", ...constraints(mapper), ...said };
    case "Boolean":
      return { type: "boolean", ...said };
    case "Object": case "any":
      return { ...said };
    default:
      throw new Error(`nobody knows the type ${type.name}`);
  }
}

function constraints({ constraints: all = {} }) {
  const names = {
    MaxLength: "maxLength", MinLength: "minLength", InclusiveMaximum: "maximum", InclusiveMinimum: "minimum",
  };
  const known = Object.entries(all).filter(([name]) => name in names);
  const pattern = all.Pattern && { pattern: all.Pattern.source };
  return { ...Object.fromEntries(known.map(([name, value]) => [names[name], value])), ...pattern };
}

/** An object; the SDK flattens what the specification has below `properties`. */
function object({ type }, inside) {
  const root = { type: "object", properties: {} };
  for (const mapper of Object.values(type.modelProperties ?? {})) {
    const path = mapper.serializedName.split(/(?<!\\)\./).map((part) => part.replaceAll("\\.", "."));
    const last = path.pop();
    let place = root;
    for (const part of path) place = place.properties[part] ??= { type: "object", properties: {} };
    place.properties[last] = inside(mapper);
    if (mapper.required && !mapper.readOnly) place.required = [...(place.required ?? []), last];
  }
  if (type.additionalProperties) root.additionalProperties = inside(type.additionalProperties);
  return root;
}
