package packaging_test

import (
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWorkflows checks that a workflow cannot run other code than what was reviewed: actions are
// named by their commits, no checkout leaves its token behind, a job gets only the rights that
// it names, and no workflow reads what strangers write. The npm package runs nothing when it is installed.
func TestWorkflows(t *testing.T) {
	root(t)
	workflows, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(workflows) < 3 {
		t.Fatalf("%d workflows, %v", len(workflows), err)
	}
	uses := regexp.MustCompile(`uses: *(.*)`)
	pinned := regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	strangers := regexp.MustCompile(`pull_request_target|workflow_run|issue_comment|` +
		`github\.(head_ref|event\.(issue|comment|pull_request\.title))`)
	for _, file := range workflows {
		text := read(t, file)
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %q is not named by its commit and version", file, m[1])
			}
		}
		for _, step := range strings.Split(text, "      - ")[1:] {
			if strings.HasPrefix(step, "uses: actions/checkout@") && !strings.Contains(step, "persist-credentials: false") {
				t.Errorf("%s: a checkout keeps its token", file)
			}
		}
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: jobs may do more than read unless they say so", file)
		}
		must.Equal(t, file, "", strangers.FindString(text))
	}
	if scripts := readJSON(t, "packaging/npm/package.json").(map[string]any)["scripts"]; scripts != nil {
		t.Errorf("packaging/npm/package.json runs scripts: %v", scripts)
	}
}
