package main

import (
	"math"
	"math/rand"
	"strconv"
	"time"
)

type durationRow struct {
	Text string `json:"text"`
	// The rest is absent for an invalid text. Nanos is a text since not every JSON reader keeps 64 bits.
	Nanos   string `json:"nanos,omitempty"`
	Printed string `json:"printed,omitempty"`
}

var handpickedDurations = []string{
	"", "0", "-0", "+0", "00", "0s", "-", "+", ".", "s", ".s", "-.s", "1", "1.5", "1.s", ".5s", "1.5s", "1d", "1w", "1S", "1H",
	"1 s", " 1s", "1s ", "--1s", "+-1s", "1h-1m", "1h+1m", "Never", "never", "1e3s", "0x1s", "1_0s", "720h", "48h", "1h30m",
	"1h30m0s", "30m1h", "1h1h", "100ms", "1us", "1µs", "1μs", "1ns", "0.1ns", "0.9ns", "1.9ns", "0.5us", "1ms1us1ns", "90s",
	"3600s", "1.001002003s", "0.3333333333333333333h", "0.9999999999999999999999999999s", "0.1h", "0.7h", "1.1h", "0.07m",
	"9223372036854775807ns", "9223372036854775808ns", "-9223372036854775807ns", "-9223372036854775808ns",
	"-9223372036854775809ns", "9223372036.854775807s", "9223372036.854775808s", "-9223372036.854775808s",
	"9223372036854775.807us", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "-2562047h47m16.854775808s",
	"2562048h", "99999999999999999999s", "0.99999999999999999999h", "0.9223372036854775807s", "0.9223372036854775808s",
	"0.92233720368547758071s", "9223372036854775807s", "18446744073709551616ns", "1sm", "1ms", "1hs", "١s", "1½s",
}

func durations(r *rand.Rand) []durationRow {
	texts := append([]string{}, handpickedDurations...)
	for range 1500 {
		text := pick(r, "", "", "", "-", "+")
		for range 1 + r.Intn(3) {
			text += digits(r, pick(r, 0, 1, 1, 2, 2, 3, 4, 6, 10))
			if r.Intn(3) == 0 {
				text += "." + digits(r, pick(r, 0, 1, 2, 3, 9, 10, 18, 19, 20, 25))
			}
			text += pick(r, "ns", "us", "µs", "μs", "ms", "s", "s", "m", "m", "h", "h")
		}
		if r.Intn(8) == 0 {
			text = scramble(r, text, "0123456789.+-nusmhd ")
		}
		texts = append(texts, text)
	}
	for range 500 {
		nanos := r.Int63() >> r.Intn(63)
		if r.Intn(3) == 0 {
			nanos -= nanos % int64(math.Pow10(r.Intn(12)))
		}
		texts = append(texts, time.Duration(pick(r, nanos, -nanos)).String())
	}
	var rows []durationRow
	for _, text := range texts {
		row := durationRow{Text: text}
		if d, err := time.ParseDuration(text); err == nil {
			row.Nanos, row.Printed = strconv.FormatInt(int64(d), 10), d.String()
		}
		rows = append(rows, row)
	}
	return rows
}
