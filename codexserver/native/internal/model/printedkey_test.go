package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestKeyOfAProgram sends the keys that a program prints: it runs again for an old key, and once for one that the provider
// refuses.
func TestKeyOfAProgram(t *testing.T) {
	ok, refused := answer{body: sse(chatDone)}, answer{status: 401, body: `{"error":{"message":"bad key printed-1, not printed-2"}}`}
	for _, tt := range []struct {
		name     string
		interval int64
		answers  []answer
		sent     string // keys of the requests, each a minute after the one before
		err      string
	}{
		{"fresh", 300_000, []answer{ok, ok, ok}, "1 1 1", ""},
		{"old", 90_000, []answer{ok, ok, ok, ok}, "1 1 2 2", ""},
		{"lasting", 0, []answer{ok, ok, ok}, "1 1 1", ""},
		{"refused", 0, []answer{ok, refused, ok, ok}, "1 1 2 2", ""},
		{"refused twice", 0, []answer{refused, refused}, "1 2", "auth.command prints"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, runs := &answers{all: tt.answers}, 0
				c := client(a, config.Provider{Auth: &config.ProviderAuth{RefreshIntervalMS: &tt.interval}})
				c.PrintKey = func(context.Context) (string, error) {
					runs++
					return fmt.Sprint("printed-", runs), nil
				}
				var err error
				for err == nil && len(a.requests) < len(tt.answers) {
					_, err = c.Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
					time.Sleep(time.Minute)
				}
				var sent []string
				for _, r := range a.requests {
					sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer printed-"))
				}
				must.Equal(t, "keys", tt.sent, strings.Join(sent, " "))
				if (err != nil) != (tt.err != "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "printed-")) {
					t.Errorf("%v, want %s", err, tt.err)
				}
			})
		})
	}
}

// TestKeys sends the key that the configuration has, and no request if the program fails.
func TestKeys(t *testing.T) {
	a := &answers{all: []answer{{body: sse(chatDone)}}}
	send(t, client(a, config.Provider{BearerToken: "written"}), &model.Request{})
	must.Equal(t, "key", "Bearer written", a.requests[0].Header.Get("Authorization"))
	a = &answers{all: []answer{{body: sse(chatDone)}}} // the variable is not set
	send(t, client(a, config.Provider{EnvKey: "UNSET_KEY", BearerToken: "written"}), &model.Request{})
	must.Equal(t, "key without the variable", "Bearer written", a.requests[0].Header.Get("Authorization"))
	c := client(&answers{}, config.Provider{Auth: &config.ProviderAuth{}})
	failed := errors.New("no key")
	c.PrintKey = func(context.Context) (string, error) { return "", failed }
	if _, err := c.Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {}); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := c.Check(t.Context(), "m"); !errors.Is(err, failed) {
		t.Error(err)
	}
}
