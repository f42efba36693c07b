package native_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestOwnServerIsLeftOut checks that a conversation never starts the program that serves it,
// here this binary, and that the model and the client are not informed.
func TestOwnServerIsLeftOut(t *testing.T) {
	b := setup(t, toy("[mcp_servers.wrapped]\ncommand = \"env\"\nargs = [\"PLAY=mcp server\", \""+os.Args[0]+"\"]\n"), native.Limits{})
	for _, tt := range []struct {
		self    string
		offered bool
	}{{"", true}, {os.Args[0], false}} {
		var log bytes.Buffer
		e, err := native.New(&native.Options{CodexHome: b.home, Self: tt.self, Logger: slog.New(slog.NewTextHandler(&log, nil)), Environ: []string{"PATH=" + os.Getenv("PATH")}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		b.engine = e
		for range 2 {
			h := &host{}
			b.provider.Add(providertest.Say("ok"))
			turn(t, b.start(t, h, protocol.Config{}), say("hi"))
			for _, name := range []string{"toy__echo", "wrapped__echo"} {
				if strings.Contains(lastRequest(b), `"`+name+`"`) != tt.offered {
					t.Errorf("self %q: %s is offered: %v", tt.self, name, !tt.offered)
				}
			}
			if strings.Contains(strings.Join(h.take(), " "), "background_event") {
				t.Error("the client was informed")
			}
		}
		if n := strings.Count(log.String(), "is left out: it is this server"); (n == 2) == tt.offered {
			t.Errorf("self %q: logged %d times:\n%s", tt.self, n, log.String())
		}
	}
}
