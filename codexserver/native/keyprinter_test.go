//go:build unix

package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestKeyPrinter runs programs for the provider's key: with the core of the environment, from no folder that commands can
// write, and with nothing of their output in an error.
func TestKeyPrinter(t *testing.T) {
	for _, tt := range []struct{ name, auth, key, err string }{
		{"a key", `command = "/bin/echo", args = ["tok1"]`, "tok1", ""},
		{"a key with blanks and the line end of Windows", `command = "printf", args = [" tok1\\t\\r\\n"]`, "tok1", ""},
		{"words on standard error", `command = "sh", args = ["-c", "echo hunter2 >&2; echo tok1"]`, "tok1", ""},
		{"a key in JSON", `command = "printf", args = ["{\"token\": \"hunter2\"}"]`, "", "printed more than a key"},
		{"other letters", `command = "printf", args = ["hunter2é"]`, "", "printed more than a key"},
		{"two lines", `command = "printf", args = ["hunter2\\nhunter3"]`, "", "printed more than a key"},
		{"a time limit below zero", `command = "/bin/echo", args = ["tok1"], timeout_ms = -1`, "tok1", ""},
		{"the home", `command = "sh", args = ["-c", "printf %s \"$PWD\""]`, "HOME", ""},
		{"a folder", `command = "sh", args = ["-c", "printf %s \"$PWD\""], cwd = "/"`, "/", ""},
		{"the environment", `command = "sh", args = ["-c", "printf x%s \"$SOME_SECRET\""]`, "x", ""},
		{"a program of the folder", `command = "planted"`, "", "planted"},
		{"it fails", `command = "sh", args = ["-c", "echo hunter2; echo hunter3 >&2; exit 3"]`, "", "failed with exit code 3"},
		{"nothing", `command = "true"`, "", "printed nothing"},
		{"more than a key", `command = "/bin/echo", args = ["hunter2", "hunter3"]`, "", "printed more than a key"},
		{"too long", `command = "sleep", args = ["60"], timeout_ms = 50`, "", "did not end within 50ms"},
		{"no program", `args = ["x"]`, "", "model_providers.test.auth.command: is missing"},
		{"two keys", `command = "true" }` + "\nenv_key = \"X\"\nquery_params = { a = \"b\"", "", "auth: cannot be combined with env_key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "---\n", native.Limits{}, providertest.Say("ok"))
			file := filepath.Join(b.home, "config.toml")
			text := string(read(t, file)) + "auth = { " + tt.auth + " }\n"
			planted := filepath.Join(b.cwd, "planted")
			write(t, planted, "#!/bin/sh\necho hunter2\n")
			must.OK(t, os.Chmod(planted, 0o755))
			t.Setenv("PATH", b.cwd+string(filepath.ListSeparator)+os.Getenv("PATH"))
			t.Setenv("SOME_SECRET", "hunter2")
			b.reopen(t)
			write(t, file, text)
			c, err := b.engine.Start(t.Context(), protocol.Config{Cwd: b.cwd}, &host{})
			if err == nil {
				defer c.Close()
				err = c.Turn(t.Context(), say("hi"))
			}
			got := ""
			if all := b.provider.Requests(); len(all) > 0 {
				got = strings.TrimPrefix(all[0].Header.Get("Authorization"), "Bearer ")
			}
			must.Equal(t, "key", strings.Replace(tt.key, "HOME", b.home, 1), got)
			if (err != nil) != (tt.err != "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hunter")) {
				t.Errorf("%v, want %s", err, tt.err)
			}
		})
	}
}

// TestKeyPrinterOfACall refuses a program that a call names, whoever may choose everything.
func TestKeyPrinterOfACall(t *testing.T) {
	b := setup(t, "", native.Limits{})
	for _, overrides := range []protocol.Overrides{
		{"model_providers.test.auth.command": "true"},
		rawConfig("model_providers", `{"new":{"base_url":"http://127.0.0.1","auth":{"command":"true"}}}`),
		rawConfig("profiles", `{"p":{"model_provider":"new","model_providers":{"new":{"base_url":"http://127.0.0.1","auth":{"command":"true"}}}}}`),
		{"profile": "p", "profiles.p.model_providers.test.auth.command": "true"},
	} {
		_, err := b.engine.Start(t.Context(), protocol.Config{Cwd: b.cwd, Overrides: overrides}, &host{})
		if !as[*engine.ConfigError](err) || !strings.Contains(err.Error(), "auth: names a program, so no call sets it") {
			t.Errorf("%s: %v", overrides, err)
		}
	}
}
