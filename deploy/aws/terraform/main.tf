# Roles, permissions and the interruption queue of Karpenter for one EKS cluster.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

data "aws_partition" "current" {}
data "aws_region" "current" {}
data "aws_caller_identity" "current" {}

locals {
  partition   = data.aws_partition.current.partition
  region      = data.aws_region.current.region
  account_id  = data.aws_caller_identity.current.account_id
  cluster_arn = "arn:${local.partition}:eks:${local.region}:${local.account_id}:cluster/${var.cluster_name}"

  policies = concat(
    ["node-lifecycle", "iam-integration", "eks-integration", "interruption", "discovery"],
    var.zonal_shift ? ["zonal-shift"] : [],
    var.doctor ? ["doctor"] : [],
  )
}

# Nodes

resource "aws_iam_role" "node" {
  name = var.node_role_name != "" ? var.node_role_name : "KarpenterNodeRole-${var.cluster_name}"
  tags = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.${data.aws_partition.current.dns_suffix}" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset([
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ])

  role       = aws_iam_role.node.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/${each.key}"
}

resource "aws_eks_access_entry" "node" {
  count = var.access_entry_type == "NONE" ? 0 : 1

  cluster_name  = var.cluster_name
  principal_arn = aws_iam_role.node.arn
  type          = var.access_entry_type
  tags          = var.tags
}

# The controller

resource "aws_iam_role" "controller" {
  name = var.controller_role_name != "" ? var.controller_role_name : "KarpenterController-${var.cluster_name}"
  tags = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [for issuer in compact([var.oidc_provider]) : {
        Effect    = "Allow"
        Principal = { Federated = "arn:${local.partition}:iam::${local.account_id}:oidc-provider/${issuer}" }
        Action    = ["sts:AssumeRoleWithWebIdentity"]
        Condition = {
          StringEquals = {
            "${issuer}:aud" = "sts.amazonaws.com"
            "${issuer}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
          }
        }
      }],
      [for arn in var.pod_identity ? [local.cluster_arn] : [] : {
        Effect    = "Allow"
        Principal = { Service = "pods.eks.amazonaws.com" }
        Action    = ["sts:AssumeRole", "sts:TagSession"]
        Condition = {
          StringEquals = {
            "aws:RequestTag/eks-cluster-arn"            = arn
            "aws:RequestTag/kubernetes-namespace"       = var.namespace
            "aws:RequestTag/kubernetes-service-account" = var.service_account
          }
        }
      }],
    )
  })

  lifecycle {
    precondition {
      condition     = var.pod_identity || var.oidc_provider != ""
      error_message = "Without oidc_provider, pod_identity must be true."
    }
  }
}

resource "aws_eks_pod_identity_association" "controller" {
  count = var.pod_identity ? 1 : 0

  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
  tags            = var.tags
}

resource "aws_iam_policy" "controller" {
  for_each = toset(local.policies)

  name = "karpenter-${each.key}-${var.cluster_name}"
  tags = var.tags

  policy = templatefile("${path.module}/../policies/${each.key}.json", {
    ClusterName    = var.cluster_name
    Partition      = local.partition
    Region         = local.region
    AccountId      = local.account_id
    NodeRole       = aws_iam_role.node.name
    ControllerRole = aws_iam_role.controller.name
    QueueName      = aws_sqs_queue.interruption.name
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each = aws_iam_policy.controller

  role       = aws_iam_role.controller.name
  policy_arn = each.value.arn
}

# Interruptions

resource "aws_sqs_queue" "interruption" {
  name                      = var.queue_name != "" ? var.queue_name : var.cluster_name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

resource "aws_sqs_queue_policy" "interruption" {
  queue_url = aws_sqs_queue.interruption.url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Events"
        Effect    = "Allow"
        Principal = { Service = ["events.amazonaws.com", "sqs.amazonaws.com"] }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.interruption.arn
      },
      {
        Sid       = "OnlyEncrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = aws_sqs_queue.interruption.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

locals {
  events = {
    interruption = {
      source = ["aws.ec2"]
      detail-type = [
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Capacity Reservation Instance Interruption Warning",
      ]
    }
    state = {
      source      = ["aws.ec2"]
      detail-type = ["EC2 Instance State-change Notification"]
      detail      = { state = ["stopping", "stopped", "shutting-down", "terminated"] }
    }
    health = {
      source      = ["aws.health"]
      detail-type = ["AWS Health Event"]
      detail      = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
    }
  }
}

resource "aws_cloudwatch_event_rule" "interruption" {
  for_each = local.events

  # Names have 64 characters at most, which the cluster's may exceed.
  name_prefix   = "karpenter-${each.key}-"
  description   = "${each.key} messages for Karpenter of ${var.cluster_name}"
  event_pattern = jsonencode(each.value)
  tags          = var.tags
}

resource "aws_cloudwatch_event_target" "interruption" {
  for_each = local.events

  rule      = aws_cloudwatch_event_rule.interruption[each.key].name
  target_id = "queue"
  arn       = aws_sqs_queue.interruption.arn
}
