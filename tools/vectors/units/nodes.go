package main

import (
	"fmt"
	"math/rand"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

type nodesRow struct {
	Nodes string `json:"nodes"`
	Total int    `json:"total"`
	// Allowed is absent for an invalid text.
	Allowed *int `json:"allowed,omitempty"`
}

func budgetNodes(r *rand.Rand) []nodesRow {
	texts := []string{
		"", "%", "0", "0%", "1", "+1", "-1", "-1%", "5", "10%", "010%", "100%", "101%", "200%", "10%%", "1.5%", "1.5", " 5", "5 ",
		"10 %", "ten", "0x5", "1_0", "2147483647", "2147483648", "4294967295", "4294967296", "4294967297", "-2147483649",
		"9223372036854775807", "9223372036854775808",
	}
	for range 300 {
		texts = append(texts, fmt.Sprintf("%d%%", r.Intn(101)), strconv.Itoa(r.Intn(1000)))
	}
	var rows []nodesRow
	for _, text := range texts {
		for _, total := range []int{0, 1, r.Intn(20), r.Intn(10_000)} {
			row := nodesRow{Nodes: text, Total: total}
			value := intstr.FromString(text)
			// Karpenter reads whatever is an integer as one, and passes on the rest.
			if count, err := strconv.Atoi(text); err == nil {
				value = intstr.FromInt32(int32(count))
			}
			if allowed, err := intstr.GetScaledValueFromIntOrPercent(&value, total, true); err == nil {
				row.Allowed = &allowed
			}
			rows = append(rows, row)
		}
	}
	return rows
}
