package codec

import (
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestTruncation cuts texts at each byte, and changes each byte into some others.
func TestTruncation(t *testing.T) {
	other := []byte{0, ' ', '"', '\\', '{', ']', ',', ':', '0', '-', 'e', 0x80, 0xc3, 0xed, 0xff}
	for _, text := range append(texts, `{"jsonrpc":"2.0","id":1.5e-3,"a":{"x":[true,false,null,"\u00e9\ud83d\ude00é€😀"]},"":{}}`) {
		if len(text) > 300 {
			continue
		}
		for i := range len(text) {
			sameVerdict(t, []byte(text[:i]))
			for _, c := range other {
				changed := []byte(text)
				changed[i] = c
				sameVerdict(t, changed)
			}
		}
	}
}

// numbers are JSON numbers, or nearly so.
var numbers = []string{
	"0", "-0", "-0.0e5", "1", "1.0", "1.5", "10e-1", "15e-1", "1e2", "1E+2", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "-9223372036854775809", "922337203685477580.7e1", "9007199254740993", "123456789012345678901234567890",
	"1e400", "1e-400", "-1e400", "0e999999999999999999", "0.0e-999999999999999999999", "1e99999999999999999999", "1e-99999999999999999999",
	"1" + strings.Repeat("0", 400), "1." + strings.Repeat("0", 400), "0." + strings.Repeat("0", 400) + "1", "4.9e-324", "1.7976931348623157e308", "1.7976931348623159e308",
}

// sameNumber reads a number and compares it with the value that math/big and json/v2 read.
func sameNumber(t *testing.T, text string) {
	text = strings.Trim(text, " \t\r\n")
	if judge([]byte(text)) != nil || !isNumber(text[0]) {
		return
	}
	var f, wantF float64
	err := Read([]byte(text), true, Into(&f, Number))
	if wantErr := json.Unmarshal([]byte(text), &wantF); (err == nil) != (wantErr == nil) || err == nil && f != wantF {
		t.Errorf("%.100s: %v, %v, want %v, %v", text, f, err, wantF, wantErr)
	}
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(exponent) > 5 {
		return // too large for a big.Rat
	}
	want, ok := new(big.Rat).SetString(text)
	var n int64
	err = Read([]byte(text), true, Into(&n, Int))
	fits := ok && want.IsInt() && want.Num().IsInt64()
	if (err == nil) != fits || fits && n != want.Num().Int64() {
		t.Errorf("%.100s: %d, %v, want %v", text, n, err, want)
	}
	s, wrong := ParseScalar([]byte(text))
	if (wrong == nil) != (ok && want.IsInt()) {
		t.Errorf("%.100s: %v", text, wrong)
	} else if again, _ := new(big.Rat).SetString(s.String()); wrong == nil && again.Cmp(want) != 0 {
		t.Errorf("%.100s became %.100s", text, s)
	}
}

func TestNumbers(t *testing.T) {
	for _, text := range numbers {
		sameNumber(t, text)
		sameNumber(t, "-"+text)
	}
}

// FuzzNumbers compares integers with math/big and fractions with json/v2.
func FuzzNumbers(f *testing.F) {
	for _, text := range numbers {
		f.Add(text)
	}
	f.Fuzz(sameNumber)
}
