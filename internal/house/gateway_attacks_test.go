package house_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// gatewayIntro begins the part of the page about the gateway.
const gatewayIntro = `
## The gateway

What is tried against [several users](../operate/gateway.md) and [several machines](../operate/gateway.md#several-machines).
[The list](../../internal/house/testdata/gateway-attacks.txt) says of each entry point what holds and which test shows it, or why the
attack does not exist there.

| attack | entry points | shown by a test | do not apply |
|---|---|---|---|`

// gatewayAttacks returns the part of the page of security cases about the gateway. It checks that
// every test that it names exists, and that each kind of attack has each entry point once.
func gatewayAttacks(t *testing.T) []string {
	t.Helper()
	const data = "internal/house/testdata/gateway-attacks.txt"
	body := strings.Split(gatewayIntro, "\n")
	var entries, left []string
	title, none := "", 0
	end := func() {
		if title == "" {
			return
		}
		if len(left) > 0 {
			t.Errorf("%s: %q lacks the entry points %q", data, title, left)
		}
		body = append(body, fmt.Sprintf("| %s | %d | %d | %d |", title, len(entries), len(entries)-none, none))
	}
	for n, line := range strings.Split(strings.TrimSuffix(read(t, data), "\n"), "\n") {
		entry, isEntry := strings.CutPrefix(line, "@ ")
		next, isTitle := strings.CutPrefix(line, "= ")
		parts := strings.Split(line, " | ")
		switch {
		case line == "" || line[0] == '#':
		case isEntry:
			name, _, _ := strings.Cut(entry, " | ")
			entries = append(entries, name)
		case isTitle:
			end()
			title, none, left = next, 0, slices.Clone(entries)
		case len(parts) != 3:
			t.Fatalf("%s:%d: %d parts, want 3", data, n+1, len(parts))
		default:
			for name := range strings.SplitSeq(parts[0], ", ") {
				i := slices.Index(left, name)
				if i < 0 {
					t.Fatalf("%s:%d: %q is no entry point, or there twice", data, n+1, name)
				}
				left = slices.Delete(left, i, i+1)
				if parts[1] == "none" {
					none++
				}
			}
			if parts[1] != "none" {
				c := securityCase{ids: []string{parts[0]}, shown: strings.Split(parts[1], "; ")}
				c.check(t, nil)
			}
		}
	}
	end()
	return body
}
