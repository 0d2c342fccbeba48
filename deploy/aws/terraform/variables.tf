variable "cluster_name" {
  description = "Name of the EKS cluster"
  type        = string
}

variable "namespace" {
  description = "Namespace of the controller"
  type        = string
  default     = "kube-system"
}

variable "service_account" {
  description = "ServiceAccount of the controller"
  type        = string
  default     = "karpenter"
}

variable "oidc_provider" {
  description = "Issuer of the cluster's OIDC provider without https://, for roles of service accounts (IRSA); empty for EKS pod identity only"
  type        = string
  default     = ""
}

variable "pod_identity" {
  description = "Whether the ServiceAccount gets the controller's role by EKS pod identity; needs its agent in the cluster"
  type        = bool
  default     = true
}

variable "access_entry_type" {
  description = "Type of the access entry by which nodes may join: EC2_LINUX, EC2_WINDOWS, or NONE if the cluster has one already or uses the ConfigMap aws-auth"
  type        = string
  default     = "EC2_LINUX"

  validation {
    condition     = contains(["EC2_LINUX", "EC2_WINDOWS", "NONE"], var.access_entry_type)
    error_message = "access_entry_type must be EC2_LINUX, EC2_WINDOWS or NONE."
  }
}

variable "zonal_shift" {
  description = "Whether the controller may ask for zonal shifts"
  type        = bool
  default     = false
}

variable "doctor" {
  description = "Whether the controller's role may ask for what only karpenter doctor looks at"
  type        = bool
  default     = true
}

variable "node_role_name" {
  description = "Name of the role of nodes, 64 characters at most; KarpenterNodeRole-(cluster_name) when empty"
  type        = string
  default     = ""
}

variable "controller_role_name" {
  description = "Name of the role of the controller, 64 characters at most; KarpenterController-(cluster_name) when empty"
  type        = string
  default     = ""
}

variable "queue_name" {
  description = "Name of the interruption queue, 80 characters at most; the name of the cluster when empty"
  type        = string
  default     = ""
}

variable "tags" {
  description = "Tags of everything that is created here"
  type        = map(string)
  default     = {}
}
