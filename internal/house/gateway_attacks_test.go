package house_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// gatewayIntro begins the part of the page about the gateway.
const gatewayIntro = `## The gateway

What is tried against [several users](../operate/gateway.md) and [several machines](../operate/gateway.md#several-machines), by where it enters. "Does not apply"
says why the attack does not exist there.

| entry point | what it is |
|---|---|`

// gatewayAttacks returns the part of the page of security cases about the gateway. It checks that
// every test that it names exists, and that each kind of attack has each entry point once. It adds
// the lines of the page with addresses.
func gatewayAttacks(t *testing.T, links map[string]bool) []string {
	t.Helper()
	const data = "internal/house/testdata/gateway-attacks.txt"
	body := strings.Split("\n"+gatewayIntro, "\n")
	var entries []string
	title, left := "", []string(nil)
	end := func() {
		if len(left) > 0 {
			t.Errorf("%s: %q lacks the entry points %q", data, title, left)
		}
	}
	for n, line := range strings.Split(strings.TrimSuffix(read(t, data), "\n"), "\n") {
		entry, isEntry := strings.CutPrefix(line, "@ ")
		next, isTitle := strings.CutPrefix(line, "= ")
		parts := strings.Split(line, " | ")
		switch {
		case line == "" || line[0] == '#':
		case isEntry:
			name, _, _ := strings.Cut(entry, " | ")
			entries, body = append(entries, name), append(body, "| "+entry+" |")
		case isTitle:
			end()
			title, left = next, slices.Clone(entries)
			body = append(body, "", "### "+title, "", "| entry point | what holds | shown by |", "|---|---|---|")
		case len(parts) != 3:
			t.Fatalf("%s:%d: %d parts, want 3", data, n+1, len(parts))
		default:
			for name := range strings.SplitSeq(parts[0], ", ") {
				i := slices.Index(left, name)
				if i < 0 {
					t.Fatalf("%s:%d: %q is no entry point, or there twice", data, n+1, name)
				}
				left = slices.Delete(left, i, i+1)
			}
			c := securityCase{ids: []string{parts[0]}, shown: strings.Split(parts[1], "; ")}
			shown := "does not apply"
			if parts[1] != "none" {
				shown = c.check(t, nil, links)
			}
			body = append(body, fmt.Sprintf("| %s | %s | %s |", parts[0], parts[2], shown))
		}
	}
	end()
	return body
}
