package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestSetDefaultModel(t *testing.T) {
	full, err := os.ReadFile("testdata/saved/full.toml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(full)
	for _, tt := range []struct{ name, before, model, effort, want string }{
		// Recorded from Codex 0.42.
		{"recorded, set", text, "new-model", "high", strings.Replace(text, `"gpt-4o"`, `"new-model"`, 1)},
		{"recorded, removed", text, "", "", strings.Replace(strings.Replace(text, "model = \"gpt-4o\"\n", "", 1), "model_reasoning_effort = \"high\"\n", "", 1)},
		{"empty", "", "m", "low", "model = \"m\"\nmodel_reasoning_effort = \"low\"\n"},
		{"tables alone", "[t]\na=1\n", "b", "low", "model = \"b\"\nmodel_reasoning_effort = \"low\"\n[t]\na=1\n"},
		{"tables and comments", "# c1\n\n# c2\n[t]\na=1\n", "b", "low", "model = \"b\"\nmodel_reasoning_effort = \"low\"\n# c1\n\n# c2\n[t]\na=1\n"},
		{"profile without a table", "profile = \"p\"\n[t]\na=1\n", "b", "low", "profile = \"p\"\n[t]\na=1\n\n[profiles.p]\nmodel = \"b\"\nmodel_reasoning_effort = \"low\"\n"},
		{"profile with an odd name", "profile = \"a b.c\"\n", "b", "", "profile = \"a b.c\"\n\n[profiles.\"a b.c\"]\nmodel = \"b\"\n"},
		{"no line break at the end", "x = 1", "b", "low", "x = 1\nmodel = \"b\"\nmodel_reasoning_effort = \"low\"\n"},
		{"dotted keys of a profile", "profile = \"p\"\nprofiles.p.model = \"x\"\nprofiles.q.model = \"z\"\n", "b", "", "profile = \"p\"\nprofiles.p.model = \"b\"\nprofiles.q.model = \"z\"\n"},
		{"value of many lines", "model = \"\"\"\na\"\"\"\nx = 1\n", "b", "", "model = \"b\"\nx = 1\n"},
		{"a key within a text", "x = \"\"\"\nmodel = 1\n\"\"\"\n", "b", "", "x = \"\"\"\nmodel = 1\n\"\"\"\nmodel = \"b\"\n"},
		{"value of another type", "model = 5\n", "b", "", "model = \"b\"\n"},
		{"quoted key", "\"model\" = 'a'\n", "b", "", "\"model\" = \"b\"\n"},
		{"profile of another type", "profile=5\n", "b", "", "profile=5\nmodel = \"b\"\n"},
		{"array tables", "a = 1\n[[arr]]\nmodel=1\n[z]\n", "b", "low", "a = 1\nmodel = \"b\"\nmodel_reasoning_effort = \"low\"\n[[arr]]\nmodel=1\n[z]\n"},
		// Codex 0.42 loses comments or reorders keys here. This package leaves the rest
		// unchanged.
		{"comments", "# top\n\nmodel = \"a\" # why\n# tail\nother = 1 # x\n\n[t]\na=1\n", "b", "low", "# top\n\nmodel = \"b\" # why\n# tail\nother = 1 # x\nmodel_reasoning_effort = \"low\"\n\n[t]\na=1\n"},
		{"comments, removed", "# top\n  model = \"a\"  # why\n# tail\nother = 1\n", "", "", "# top\n  # why\n# tail\nother = 1\n"},
		{"windows' line breaks", "model = \"a\"\r\nx = 1\r\n[t]\r\n", "b", "low", "model = \"b\"\r\nx = 1\r\nmodel_reasoning_effort = \"low\"\r\n[t]\r\n"},
		{"a table within the profile's", "profile = \"p\"\n[profiles.p.sub]\na = 1\n", "b", "", "profile = \"p\"\n[profiles.p.sub]\na = 1\n\n[profiles.p]\nmodel = \"b\"\n"},
		{"characters to escape", "model = \"a\"\n", "q\"u\\o\n\t\x7f\u00e9\u0001", "", "model = \"q\\\"u\\\\o\\n\\t\\u007Fé\\u0001\"\n"},
		{"nothing to remove", "# only a comment", "", "", "# only a comment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := homeWith(t, tt.before)
			var model *string
			var effort *protocol.ReasoningEffort
			if tt.model != "" {
				model = &tt.model
			}
			if e := protocol.ReasoningEffort(tt.effort); e != "" {
				effort = &e
			}
			for range 2 { // the second edit changes nothing
				if err := config.SetDefaultModel(home, model, effort); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(home, "config.toml"))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, string(got)); diff != "" {
					t.Fatal("(-want +got)\n" + diff)
				}
			}
		})
	}
}

func TestSetDefaultModelFile(t *testing.T) {
	home := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(home, "config.toml")
	if err := config.SetDefaultModel(home, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("removing nothing created a file")
	}
	model := "m"
	if err := config.SetDefaultModel(home, &model, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	// A symbolic link to the file stays a link.
	link := t.TempDir()
	if err := os.Symlink(path, filepath.Join(link, "config.toml")); err != nil {
		t.Fatal(err)
	}
	model = "other"
	if err := config.SetDefaultModel(link, &model, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "model = \"other\"\n" {
		t.Errorf("behind the link: %q, %v", got, err)
	}
}

func TestSetDefaultModelRefused(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"model = \n", "config.toml:1:"},
		{"profile = \"p\"\nprofiles = 5\n", "profiles is not a table"},
		{"profile = \"p\"\n[[profiles]]\np = 1\n", "profiles is not a table"},
		{"profile = \"p\"\nprofiles.p = \"x\"\n", "profiles.p is not a table"},
		{"profile = \"p\"\nprofiles = { p = { model = \"x\" } }\n", "profiles.p.model cannot be changed automatically in a file with this layout; edit the file"},
		{"profile = \"p\"\n[profiles]\np.x = 1\n", "profiles.p.model cannot be changed"},
	} {
		home := homeWith(t, tt.file)
		model := "m"
		err := config.SetDefaultModel(home, &model, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %s", tt.file, err, tt.want)
		}
		if got, _ := os.ReadFile(filepath.Join(home, "config.toml")); string(got) != tt.file {
			t.Errorf("%q became %q", tt.file, got)
		}
	}
}
