package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var man = flag.String("man", "", "the `folder` to which TestMan writes the manual pages")

// TestMan writes a manual page of each command, which has each of its flags. Packages get them; the program has no part of
// what makes them.
func TestMan(t *testing.T) {
	dir := cmp.Or(*man, t.TempDir())
	root := (&options{name: "codex-mcp"}).commands(nil)
	var walk func(cmd *cobra.Command, visit func(*cobra.Command))
	walk = func(cmd *cobra.Command, visit func(*cobra.Command)) {
		visit(cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub, visit)
			}
		}
	}
	walk(root, func(cmd *cobra.Command) { cmd.DisableAutoGenTag = true })
	must.OK(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "codexmcp", Manual: "codex-mcp"}, dir))
	walk(root, func(cmd *cobra.Command) {
		page := string(must.Get(os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")))(t))
		page = strings.ReplaceAll(page, `\-`, "-")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(page, "--"+f.Name) == f.Hidden {
				t.Errorf("%s: --%s: %s", cmd.CommandPath(), f.Name, page)
			}
		})
		if !strings.Contains(page, cmd.Short) {
			t.Errorf("%s: no %q in %s", cmd.CommandPath(), cmd.Short, page)
		}
	})
}
