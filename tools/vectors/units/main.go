// Command units writes the vectors that the Rust crate in crates/units is held against: what the Go
// libraries under Kubernetes and Karpenter answer for a fixed set of hand-picked and seeded random inputs.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"math/rand"
	"os"
	"path/filepath"
)

// seed fixes the random inputs, so that running the program again changes nothing.
const seed = 20260801

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: units <output directory>")
	}
	// Each file has its own generator: changing one leaves the others as they are.
	generator := func() *rand.Rand { return rand.New(rand.NewSource(seed)) }
	write("quantity.json", quantities(generator()))
	write("quantity_pairs.json", quantityPairs(generator()))
	write("duration.json", durations(generator()))
	write("cron.json", schedules(generator()))
	write("nodes.json", budgetNodes(generator()))
}

// write stores one JSON value per line within an array, so that differences read well.
func write[T any](name string, rows []T) {
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, row := range rows {
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(row); err != nil {
			log.Fatal(err)
		}
		if i < len(rows)-1 {
			out.Truncate(out.Len() - 1)
			out.WriteString(",\n")
		}
	}
	out.WriteString("]\n")
	if err := os.WriteFile(filepath.Join(os.Args[1], name), out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d rows", name, len(rows))
}

// pick returns one of the choices.
func pick[T any](r *rand.Rand, choices ...T) T {
	return choices[r.Intn(len(choices))]
}

// digits returns n random digits, with many zeros and nines, where rounding and carrying happen.
func digits(r *rand.Rand, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = pick(r, '0', '0', '9', byte('0'+r.Intn(10)), byte('0'+r.Intn(10)))
	}
	return string(out)
}

// scramble changes one byte of the text to one from the alphabet, or inserts or removes one.
func scramble(r *rand.Rand, text, alphabet string) string {
	at := r.Intn(len(text) + 1)
	other := string(alphabet[r.Intn(len(alphabet))])
	switch {
	case at == len(text):
		return text + other
	case r.Intn(3) == 0:
		return text[:at] + text[at+1:]
	case r.Intn(2) == 0:
		return text[:at] + other + text[at:]
	default:
		return text[:at] + other + text[at+1:]
	}
}
