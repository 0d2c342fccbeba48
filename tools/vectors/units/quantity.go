package main

import (
	"fmt"
	"log"
	"math/big"
	"math/rand"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

type quantityRow struct {
	Text string `json:"text"`
	// The rest is absent for an invalid text.
	Nanos  string `json:"nanos,omitempty"`
	Format string `json:"format,omitempty"`
	// Written is what is printed right after reading, Canonical what is printed once the cached text is gone.
	Written   string `json:"written,omitempty"`
	Canonical string `json:"canonical,omitempty"`
	// Lossy says that the canonical text has lost its suffix, and with it the magnitude.
	Lossy bool `json:"lossy,omitempty"`
	// Value and Milli are absent where Go's answer depends on its internal representation.
	Value *int64  `json:"value,omitempty"`
	Milli *int64  `json:"milli,omitempty"`
	Float float64 `json:"float,omitempty"`
}

type quantityPair struct {
	A                string `json:"a"`
	B                string `json:"b"`
	Cmp              int    `json:"cmp"`
	Sum              string `json:"sum"`
	SumFormat        string `json:"sumFormat"`
	Difference       string `json:"difference"`
	DifferenceFormat string `json:"differenceFormat"`
}

// limit is 10^38 nanos, where the Rust type saturates; larger inputs are left out.
var limit = new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)

var longExponent = regexp.MustCompile(`[eE][-+]?[0-9]{4}`)

var handpickedQuantities = []string{
	"", "0", "00", "-0", "+0", "0.0", "0Ki", "0n", "0e5", "0e-20", "0.0Ki", "+", "-", ".", "-.", "+.", "m", "Ki", "Ti",
	"Pi", "Ei", ".Ki", ".Pi", "E", "e", "e5", "e-9", "e-10", ".e-9", "-e-20", "1", "+1", "-1", "01", "1.", ".1", ".", "..",
	"1..2", "1.2.3", "--1", "+-1", " 1", "1 ", "1 Ki", "1_000", "1,5", "0x10", "١", "½", "1K", "1ki", "1mi", "1KB", "1kb",
	"1B", "1i", "1Kii", "1iK", "1m5", "1Ki5", "1e", "1E", "1e+", "1e-", "1e1.5", "1ee5", "1eE5", "1e5m", "1e5Ki", "1E5",
	"1e+5", "1e-5", "1E+05", "1e00", "1e4294967297", "1e-4294967290", "1e9223372036854775807", "1e9223372036854775808",
	"500m", "1500m", "1.5", "1.500", "1.5000", "1.50000", "1.000", "01.500", "0.500", "1.500000", "+1.500", "-1.500", "5.",
	"5.m", "1.500k", "1000", "1000m", "1000k", "100000", "1e3", "1e4", "12e4", "1e-1", "1500e-3", "1.5e3", "1E3", "1e+3",
	"1e03", "1n", "1u", "0.1n", "0.9n", "1.1n", "-0.1n", "-1.1n", "1e-10", "-1e-10", "1e-30", "0.0000000001", "0.000000001",
	"1.0000000001", "-1.0000000001", "1Ki", "+1Ki", "01Ki", "1.Ki", "-1Ki", "8Ki", "1024Ki", "1023Ki", "1025Ki", "0.5Ki",
	"1.5Ki", "-1.5Ki", "0.0001Ki", "-0.0001Ki", "0.001Ki", "1.0005Ki", "1.0009765625Ki", "1.5Gi", "1536Mi", "3.1Gi",
	"0.1Gi", "1.0000000000000000000001Gi", "0.00000000000000000001Ei", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", "7Ei", "8Ei",
	"9Ei", "-8Ei", "-9Ei", "7.9999999999Ei", "8191Pi", "8192Pi", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "9223372036854775807Ki", "99999999999999Ki", "99Ti", "100Ti", "1k", "1M", "1G", "1T", "1P",
	"1E", "999E", "1000E", "1001E", "1000000E", "9.223372036854775807E", "9.223372036854775808E", "123456789012345678",
	"1234567890123456789", "12345678901234567890", "999999999999999999", "1000000000000000000000", "0.123456789",
	"0.1234567890", "0.1234567891", "1e18", "1e21", "1e24", "100e16", "1e28", "100000000000E", "2Gi", "4Gi", "16Gi", "100Mi",
	"250Mi", "3500m", "3920m", "7910m", "15.89", "110", "17Gi", "20Gi", "53687091200", "1000Gi", "100m", "10m", "1m", "0.5m",
}

func randomQuantity(r *rand.Rand) string {
	text := pick(r, "", "", "", "", "-", "+") + digits(r, pick(r, 0, 1, 1, 1, 2, 2, 3, 4, 5, 8, 14, 17, 18, 19, 22))
	if r.Intn(2) == 0 {
		text += "." + digits(r, pick(r, 0, 1, 1, 2, 3, 3, 4, 6, 9, 10, 12, 20))
	}
	switch r.Intn(8) {
	case 0, 1, 2:
		text += pick(r, "n", "u", "m", "", "k", "M", "G", "T", "P", "E")
	case 3, 4, 5:
		text += pick(r, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
	case 6:
		text += fmt.Sprintf("%s%s%d", pick(r, "e", "E"), pick(r, "", "", "+", "-"), r.Intn(15))
	}
	if r.Intn(8) == 0 {
		text = scramble(r, text, "0123456789.+-eEinumkKMGTP xB")
	}
	// Go takes minutes and gigabytes to compute with such exponents.
	if longExponent.MatchString(text) {
		return randomQuantity(r)
	}
	return text
}

func quantities(r *rand.Rand) []quantityRow {
	texts := append([]string{}, handpickedQuantities...)
	for range 3000 {
		texts = append(texts, randomQuantity(r))
	}
	var rows []quantityRow
	for _, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			rows = append(rows, quantityRow{Text: text})
			continue
		}
		exact := nanos(q)
		if exact.CmpAbs(limit) > 0 {
			continue
		}
		canonical, lossy := canonicalText(q)
		rows = append(rows, quantityRow{
			Text:      text,
			Nanos:     exact.String(),
			Format:    string(q.Format),
			Written:   written(text),
			Canonical: canonical,
			Lossy:     lossy,
			Value:     rounded(exact, 1_000_000_000, q.Value()),
			Milli:     rounded(exact, 1_000_000, q.MilliValue()),
			Float:     q.AsFloat64Slow(),
		})
	}
	return rows
}

func quantityPairs(r *rand.Rand) []quantityPair {
	var rows []quantityPair
	for len(rows) < 2000 {
		a, b := randomQuantity(r), randomQuantity(r)
		switch r.Intn(8) {
		case 0:
			b = a
		case 1:
			a = pick(r, "0", "0Ki", "0e0", "-", "0.0Gi")
		case 2:
			b = pick(r, "0", "0Ki", "0e0", "1n", "1Ki")
		}
		left, errLeft := resource.ParseQuantity(a)
		right, errRight := resource.ParseQuantity(b)
		if errLeft != nil || errRight != nil {
			continue
		}
		sum, difference := left.DeepCopy(), left.DeepCopy()
		sum.Add(right)
		difference.Sub(right)
		// What Go prints without its suffix shows nothing.
		sumText, sumLossy := canonicalText(sum)
		differenceText, differenceLossy := canonicalText(difference)
		beyond := nanos(sum).CmpAbs(limit) > 0 || nanos(difference).CmpAbs(limit) > 0
		if beyond || sumLossy || differenceLossy {
			continue
		}
		rows = append(rows, quantityPair{
			A: a, B: b, Cmp: left.Cmp(right),
			Sum: sumText, SumFormat: string(sum.Format),
			Difference: differenceText, DifferenceFormat: string(difference.Format),
		})
	}
	return rows
}

// written reads a quantity as from JSON and writes it to JSON again, checking that String agrees.
func written(text string) string {
	var q resource.Quantity
	if err := q.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
		log.Fatal(err)
	}
	out, err := q.MarshalJSON()
	if err != nil {
		log.Fatal(err)
	}
	if printed := `"` + q.String() + `"`; printed != string(out) {
		log.Fatalf("%q: String gives %s, MarshalJSON %s", text, printed, out)
	}
	return string(out[1 : len(out)-1])
}

func canonicalText(q resource.Quantity) (text string, lossy bool) {
	number, suffix := q.CanonicalizeBytes(nil)
	text = string(number) + string(suffix)
	again, err := resource.ParseQuantity(text)
	if err != nil {
		log.Fatalf("%q: %v", text, err)
	}
	return text, nanos(again).Cmp(nanos(q)) != 0
}

// nanos is the exact value times 10^9; no quantity is finer than that.
func nanos(q resource.Quantity) *big.Int {
	copied := q.DeepCopy()
	dec := copied.AsDec()
	power := 9 - int64(dec.Scale())
	if power < 0 {
		divisor := new(big.Int).Exp(big.NewInt(10), big.NewInt(-power), nil)
		quotient, rest := new(big.Int).QuoRem(dec.UnscaledBig(), divisor, new(big.Int))
		if rest.Sign() != 0 {
			log.Fatalf("%s is finer than a nano", dec)
		}
		return quotient
	}
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(power), nil)
	return factor.Mul(factor, dec.UnscaledBig())
}

// rounded returns Go's answer unless that depends on how Go represents the quantity: where the exact answer
// overflows an int64, and for negative numbers that need rounding or have more nanos than fit an int64.
func rounded(exact *big.Int, step, answer int64) *int64 {
	quotient, rest := new(big.Int).QuoRem(exact, big.NewInt(step), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() || rest.Sign() < 0 || (exact.Sign() < 0 && !exact.IsInt64()) {
		return nil
	}
	return &answer
}
