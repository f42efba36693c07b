package house_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const casesIntro = `# Security cases

Published security flaws of other coding agents, of MCP software and of sandboxes.
[The list](../../internal/house/testdata/security-cases.txt) says of each what happened there, why it does not happen here, and which
test shows it. A test of its own has a row with the flaw's id; other tests show the kind of flaw. [Attacks](attacks.md) lists what is
played against the whole program, and [SECURITY.md](../../SECURITY.md) what is known to be open. A test writes this page.

| kind of flaw | cases | a test of their own | another test | do not apply |
|---|---|---|---|---|`

// securityCase is a line of testdata/security-cases.txt.
type securityCase struct {
	ids   []string
	shown []string // "own PACKAGE TEST", "test PACKAGE TEST", "attack NAME" or "none"
}

// TestSecurityCases checks that every test and attack that a case names exists, that a test with
// scenarios has the case, and that the page counts what the file has; -update writes the page.
func TestSecurityCases(t *testing.T) {
	const data, page = "internal/house/testdata/security-cases.txt", "docs/project/security-cases.md"
	seen, scenarios := map[string]bool{}, map[string]bool{}
	all := caseCount{title: "all"}
	var kinds []caseCount
	for n, line := range strings.Split(strings.TrimSuffix(read(t, data), "\n"), "\n") {
		title, isTitle := strings.CutPrefix(line, "= ")
		switch {
		case line == "" || line[0] == '#':
			continue
		case isTitle:
			kinds = append(kinds, caseCount{title: title})
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 5 {
			t.Fatalf("%s:%d: %d parts, want 5", data, n+1, len(parts))
		}
		c := securityCase{strings.Fields(parts[0]), strings.Split(parts[3], "; ")}
		for _, id := range c.ids {
			if seen[id] {
				t.Errorf("%s:%d: %s is there twice", data, n+1, id)
			}
			seen[id] = true
		}
		c.check(t, scenarios)
		kinds[len(kinds)-1].add(c)
		all.add(c)
	}
	for id := range scenarios {
		if !seen[id] {
			t.Errorf("a test has the scenario %s, which %s does not have", id, data)
		}
	}
	if all.own+all.other+all.none < 165 {
		t.Errorf("only %d cases", all.own+all.other+all.none)
	}
	body := strings.Split(casesIntro, "\n")
	for _, k := range append(kinds, all) {
		body = append(body, fmt.Sprintf("| %s | %d | %d | %d | %d |", k.title, k.own+k.other+k.none, k.own, k.other, k.none))
	}
	want := append(body, gatewayAttacks(t)...)
	if *update {
		write(t, page, want)
		return
	}
	if read(t, page) != strings.Join(want, "\n")+"\n" {
		compare(t, page, strings.Split(strings.TrimSuffix(read(t, page), "\n"), "\n"), want)
		t.Errorf("%s is not what go test ./internal/house -run SecurityCases -update writes", page)
	}
}

// caseCount counts the cases of a kind by what shows them.
type caseCount struct {
	title            string
	own, other, none int
}

func (n *caseCount) add(c securityCase) {
	switch {
	case c.shown[0] == "none":
		n.none++
	case strings.HasPrefix(c.shown[0], "own "):
		n.own++
	default:
		n.other++
	}
}

// scenario finds the ids in the tables of tests about flaws.
var scenario = regexp.MustCompile(`(?m)^\t\{"([^"]+)", `)

// check checks what shows the case, and adds the scenarios of the tests that it names.
func (c *securityCase) check(t *testing.T, scenarios map[string]bool) {
	t.Helper()
	for _, how := range c.shown {
		words := strings.SplitN(how, " ", 3)
		switch {
		case how == "none" && len(c.shown) == 1:
		case words[0] == "attack":
			name := strings.TrimPrefix(how, "attack ")
			if !strings.Contains(read(t, "docs/project/attacks.md"), "\n| "+name+" |") {
				t.Errorf("%s: there is no attack %q", c.ids[0], name)
			}
		case len(words) == 3 && (words[0] == "own" || words[0] == "test"):
			file := testFile(t, words[1], words[2])
			if file == "" {
				t.Errorf("%s: there is no test %s %s", c.ids[0], words[1], words[2])
				continue
			}
			if words[0] == "test" {
				continue
			}
			var has []string
			for _, m := range scenario.FindAllStringSubmatch(read(t, file), -1) {
				has = append(has, m[1])
				scenarios[m[1]] = true
			}
			if !slices.ContainsFunc(c.ids, func(id string) bool { return slices.Contains(has, id) }) {
				t.Errorf("%s: %s has no scenario of it", c.ids[0], file)
			}
		default:
			t.Errorf("%s: %q says nothing about how it is shown", c.ids[0], how)
		}
	}
}

// testFile returns the file of a test, "" if there is none.
func testFile(t *testing.T, folder, test string) string {
	t.Helper()
	all, err := filepath.Glob(folder + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if strings.Contains(read(t, file), "\nfunc "+test+"(") {
			return filepath.ToSlash(file)
		}
	}
	return ""
}
