package settings_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const issuer = "[http]\nurl = \"https://codex.example.com/mcp\"\n[http.oauth]\nissuer = \"https://login.example.com\"\n"

// TestFolderOfClaim gives users without folders the one of the template, by their subjects.
func TestFolderOfClaim(t *testing.T) {
	for _, tt := range []struct{ oauth, subject, folder string }{
		{`folder = "/srv/code/{sub}"`, "", "/srv/code/ann"},
		{`folder = "/srv/code/{sub}"`, "7d1f0c4e-5b0a-4d0e-9a53-1c2b3a4d5e6f", "/srv/code/7d1f0c4e-5b0a-4d0e-9a53-1c2b3a4d5e6f"},
		{"claim = \"email\"\nfolder = \"/srv/{email}\"", "Ann+x@example.com", "/srv/Ann+x@example.com"},
		{"claim = \"https://example.com/user\"\nfolder = \"/srv/{https://example.com/user}\"", "a.b_c", "/srv/a.b_c"},
		{`folder = "/srv/code/{sub}"`, strings.Repeat("x", 128), "/srv/code/" + strings.Repeat("x", 128)},
	} {
		file := issuer + tt.oauth + "\n[http.principals.ann]\n"
		if tt.subject != "" {
			file += fmt.Sprintf("subject = %q\n", tt.subject)
		}
		file += "[http.principals.bob]\nfolders = [\"/work/bob\", \"/work/team\"]\n"
		got, err := load(t, file)
		if err != nil {
			t.Errorf("%s, %s: %v", tt.oauth, tt.subject, err)
			continue
		}
		if diff := cmp.Diff([][]string{{tt.folder}, {"/work/bob", "/work/team"}}, [][]string{got.Principals["ann"].Folders, got.Principals["bob"].Folders}); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", tt.oauth, tt.subject, diff)
		}
	}
}

// TestHostileClaims makes folders of subjects that were copied from what a stranger chose. Each is refused,
// and the error names the claim.
func TestHostileClaims(t *testing.T) {
	for _, subject := range []string{
		".", "..", "...", "../bob", "a/b", "/etc", "a/../../etc", "a/.", "a\\b", `..\bob`, ".git", ".codex", "-rf", "_a", "@a", "+a", "a.", "a..", " a", "a ", "a b",
		"a\x00", "a\x00b", "a\n", "a\r\n", "a\tb", "a\x1b[2J", "a\x7f", "a\u0085", "a\u2028", "a\u200bb", "a\u202eb", "\ufeffa", "ä", "a\u0308", "\u0430nn", "\uff0e\uff0e", "\u2215etc", "a\u2044b",
		"{sub}", "a{b", "$HOME", "~", "~root", "*", "a?", "a:b", "a|b", "a;b", "a'b", "a\"b", "a`b`", "a%2fb", "auth0|1", "con:", strings.Repeat("x", 129), strings.Repeat("x", 5000),
	} {
		file := issuer + "folder = \"/srv/code/{sub}\"\n[http.principals.ann]\nsubject = " + tomlText(subject) + "\n"
		got, err := load(t, file)
		if err == nil || !strings.Contains(err.Error(), "http.principals.ann.subject: the claim sub is ") || strings.ContainsAny(err.Error(), "\x00\x1b\r\x7f\u202e") || len(err.Error()) > 900 {
			t.Errorf("%.40q: %v, %v", subject, got.Principals["ann"].Folders, err)
		}
		if _, err := load(t, file+"folders = [\"/work/ann\"]\n"); err != nil { // who says where it works may have any subject
			t.Errorf("%.40q with folders: %v", subject, err)
		}
	}
}

// tomlText returns a text of TOML, with every character escaped that is not a letter or digit.
func tomlText(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, "\\U%08X", r)
	}
	return `"` + b.String() + `"`
}

// TestFoldersOfClaims checks that two users never get one folder, nor one in that of the other.
func TestFoldersOfClaims(t *testing.T) {
	for name, tt := range map[string]struct{ users, want string }{
		"case":               {"[http.principals.ann]\nsubject = \"Ann\"\n[http.principals.bob]\nsubject = \"aNN\"\n", `http.principals.bob.subject: the claim sub is "aNN", and that of another user is "Ann"`},
		"a name and subject": {"[http.principals.ann]\n[http.principals.bob]\nsubject = \"ann\"\n", `http.principals.bob.subject: ann has the subject "ann" too`},
		"above":              {"[http.principals.ann]\n[http.principals.bob]\nfolders = [\"/srv/code\"]\n", "http.principals.ann.folders: /srv/code/ann lies in /srv/code of bob"},
		"below":              {"[http.principals.ann]\n[http.principals.bob]\nfolders = [\"/srv/code/ann/x\"]\n", "http.principals.bob.folders: /srv/code/ann/x lies in /srv/code/ann of ann"},
		"no folders":         {"[http.principals.ann]\nfolders = []\n", "http.principals.ann.folders: missing"},
	} {
		if _, err := load(t, issuer+"folder = \"/srv/code/{sub}\"\n"+tt.users); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestTemplates checks which templates are refused.
func TestTemplates(t *testing.T) {
	for _, folder := range []string{
		"/srv/code", "/{sub}", "{sub}", "srv/{sub}", "./{sub}", "/srv/code/{sub}/", "/srv/code/{sub}/x", "/srv/{sub}/{sub}", "/srv/{email}", "/srv/{}", "/srv/x{sub}", "/srv/{sub}x", "/srv/{sub}{sub}",
		"/srv/../{sub}", "/srv//{sub}", "//{sub}", "/srv/./{sub}", "/srv/code{/{sub}", "/srv/{ sub }", "/srv/{SUB}", "~/{sub}", "$HOME/{sub}", filepath.Join("/srv", "sub"),
	} {
		if _, err := load(t, issuer+fmt.Sprintf("folder = %q\n[http.principals.ann]\n", folder)); err == nil || !strings.Contains(err.Error(), "http.oauth.folder: want") {
			t.Errorf("%q: %v", folder, err)
		}
	}
	token := "[http.principals.ann]\ntokens = [\"" + hashOfA + "\"]\n"
	if _, err := load(t, "[http.oauth]\nfolder = \"/srv/{sub}\"\n"+token); err == nil || !strings.Contains(err.Error(), "http.oauth.issuer: missing") {
		t.Errorf("without an issuer: %v", err)
	}
}
