package house_test

import (
	"regexp"
	"strings"
	"testing"
)

// A page of a host fits on a screen.
const maxHostLines = 55

var (
	hostRow = regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(hosts/(\S+\.md)\) \|.* \| ([^|]+) \|$`)
	tried   = regexp.MustCompile(`(?m)^Tried: ([\d.]+)[ ,]`)
	// otherPlace is in a set-up that does not let the host alone answer.
	otherPlace = regexp.MustCompile(`--approvals[", ]+(page|both)`)
	notTried   = regexp.MustCompile(`(?m)^Not tried\. All of this is from its documentation`)
)

// TestDocsHosts checks the pages of hosts: their form, and that the table of docs/use/clients.md has each
// with the version that was tried.
func TestDocsHosts(t *testing.T) {
	pending := map[string]page{}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.file, "docs/use/hosts/") {
			pending[p.file] = p
		}
	}
	for _, row := range hostRow.FindAllStringSubmatch(read(t, "docs/use/clients.md"), -1) {
		name, file, version := row[1], "docs/use/hosts/"+row[2], row[3]
		p, ok := pending[file]
		if !ok {
			t.Errorf("docs/use/clients.md has no page, or two rows, for %s", name)
			continue
		}
		delete(pending, file)
		text := read(t, file)
		if n := strings.Count(text, "\n"); n > maxHostLines {
			t.Errorf("%s has %d lines, want at most %d", file, n, maxHostLines)
		}
		if !strings.HasPrefix(text, "# "+name+"\n\n```") {
			t.Errorf("%s does not begin with the name %s and its set-up", file, name)
		}
		for _, part := range []string{"\n## Questions\n", "\n## What does not work\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no part %q", file, strings.TrimSpace(part))
			}
		}
		if len(p.blocks) == 0 || !strings.Contains(p.blocks[0].text, "codex-mcp") {
			t.Errorf("the set-up in %s does not start codex-mcp", file)
		}
		if !otherPlace.MatchString(p.blocks[0].text) {
			t.Errorf("the set-up in %s lets the host alone answer", file)
		}
		seen := tried.FindStringSubmatch(p.text)
		switch {
		case version == "no":
			if seen != nil || !notTried.MatchString(p.text) {
				t.Errorf("%s does not say that it was not tried", file)
			}
		case seen == nil || seen[1] != version:
			t.Errorf("%s does not say that %s was tried", file, version)
		}
	}
	for file := range pending {
		t.Errorf("docs/use/clients.md has no row for %s", file)
	}
}
