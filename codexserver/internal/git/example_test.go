package git_test

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// A diff has a section for each file.
func ExampleSections() {
	const diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n" +
		"diff --git a/b b/b\ndeleted file mode 100644\n"
	for section := range git.Sections(diff) {
		heading, _, _ := strings.Cut(section, "\n")
		fmt.Printf("%d lines of %q\n", strings.Count(section, "\n"), heading)
	}
	// Output:
	// 6 lines of "diff --git a/a b/a"
	// 2 lines of "diff --git a/b b/b"
}
