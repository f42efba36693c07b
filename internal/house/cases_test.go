package house_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const casesIntro = `# Security cases

Published security flaws of other coding agents, of MCP software and of sandboxes: what happened there, and why it does not happen
here. The test after "own" has a row with the flaw's id, the others show the kind of flaw. [attacks.md](attacks.md) lists the attacks
that are played against the whole program, and [SECURITY.md](../../SECURITY.md) what is known to be open. The last part has the attacks on
[the gateway](#the-gateway). A test writes this page.

`

// securityCase is a line of testdata/security-cases.txt.
type securityCase struct {
	ids                 []string
	program, what, here string
	shown               []string // "own PACKAGE TEST", "test PACKAGE TEST", "attack NAME" or "none"
}

// TestSecurityCases checks that every test and attack that a case names exists, that a test with
// scenarios has the case, and that the page has what the file has; -update writes the page.
func TestSecurityCases(t *testing.T) {
	const data, page = "internal/house/testdata/security-cases.txt", "docs/project/security-cases.md"
	var body []string
	seen, scenarios, links := map[string]bool{}, map[string]bool{}, map[string]bool{}
	own, other, none := 0, 0, 0
	for n, line := range strings.Split(strings.TrimSuffix(read(t, data), "\n"), "\n") {
		title, isTitle := strings.CutPrefix(line, "= ")
		switch {
		case line == "" || line[0] == '#':
			continue
		case isTitle:
			body = append(body, "", "## "+title, "", "| flaw | program | what happened there | why not here | shown by |", "|---|---|---|---|---|")
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 5 {
			t.Fatalf("%s:%d: %d parts, want 5", data, n+1, len(parts))
		}
		c := securityCase{strings.Fields(parts[0]), parts[1], parts[2], parts[4], strings.Split(parts[3], "; ")}
		for _, id := range c.ids {
			if seen[id] {
				t.Errorf("%s:%d: %s is there twice", data, n+1, id)
			}
			seen[id] = true
		}
		switch shown := c.check(t, scenarios, links); {
		case c.shown[0] == "none":
			none++
			body = append(body, c.row("does not apply"))
		case strings.HasPrefix(c.shown[0], "own "):
			own++
			body = append(body, c.row("own: "+shown))
		default:
			other++
			body = append(body, c.row(shown))
		}
	}
	for id := range scenarios {
		if !seen[id] {
			t.Errorf("a test has the scenario %s, which %s does not have", id, data)
		}
	}
	if own+other+none < 165 {
		t.Errorf("only %d cases", own+other+none)
	}
	body = append(body, gatewayAttacks(t, links)...)
	intro := casesIntro + fmt.Sprintf("Of %d flaws %d have a test of their own, %d are shown by another test, and %d do not apply.", own+other+none, own, other, none)
	want := strings.Split(intro+"\n"+strings.Join(body, "\n")+"\n\n"+strings.Join(slices.Sorted(maps.Keys(links)), "\n"), "\n")
	if *update {
		write(t, page, want)
		return
	}
	if read(t, page) != strings.Join(want, "\n")+"\n" {
		compare(t, page, strings.Split(strings.TrimSuffix(read(t, page), "\n"), "\n"), want)
		t.Errorf("%s is not what go test ./internal/house -run SecurityCases -update writes", page)
	}
}

// scenario finds the ids in the tables of tests about flaws.
var scenario = regexp.MustCompile(`(?m)^\t\{"([^"]+)", `)

// check checks what shows the case, and returns it for the page. It adds the scenarios of the
// tests that it names, and the lines of the page with their addresses.
func (c *securityCase) check(t *testing.T, scenarios, links map[string]bool) string {
	t.Helper()
	var shown []string
	for _, how := range c.shown {
		words := strings.SplitN(how, " ", 3)
		switch {
		case how == "none" && len(c.shown) == 1:
		case words[0] == "attack":
			name := strings.TrimPrefix(how, "attack ")
			if !strings.Contains(read(t, "docs/project/attacks.md"), "\n| "+name+" |") {
				t.Errorf("%s: there is no attack %q", c.ids[0], name)
			}
			shown = append(shown, "the attack "+name)
		case len(words) == 3 && (words[0] == "own" || words[0] == "test"):
			file := testFile(t, words[1], words[2])
			if file == "" {
				t.Errorf("%s: there is no test %s %s", c.ids[0], words[1], words[2])
				continue
			}
			name := strings.TrimSuffix(strings.TrimPrefix(file, "codexserver/"), "_test.go")
			links[fmt.Sprintf("[%s]: ../%s", name, file)] = true
			shown = append(shown, fmt.Sprintf("[%s][%s]", words[2], name))
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
	return strings.Join(shown, ", ")
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

func (c *securityCase) row(shown string) string {
	var links []string
	for _, id := range c.ids {
		links = append(links, reference(id))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", strings.Join(links, ", "), c.program, c.what, c.here, shown)
}

// reference returns an id as a link. Some flaws have only a name of ours.
func reference(id string) string {
	repo, number, issue := strings.Cut(id, "#")
	switch {
	case strings.HasPrefix(id, "CVE-"):
		return "[" + id + "](https://www.cve.org/CVERecord?id=" + id + ")"
	case strings.HasPrefix(id, "GHSA-"):
		return "[" + id + "](https://github.com/advisories/" + id + ")"
	case issue:
		return "[" + id + "](https://github.com/" + repo + "/issues/" + number + ")"
	}
	return id
}
