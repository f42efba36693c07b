package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// opens is the TypeScript client when it shows no forms and opens links.
type opens struct{ typescript }

func (c opens) connect(ctx context.Context, s setup, w *witness) (session, error) {
	s.Links, w.links = true, make(chan string, 1)
	return c.typescript.connect(ctx, s, w)
}

// TestLinks has the official TypeScript clients open the links of questions. Their handlers accept
// at once, and the answer on the page decides.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		version string
		client  typescript
	}{
		{"SDK 1", legacy, typescript{name: "sdk"}},
		{"SDK 2", modern, typescript{"client", modern}},
		{"tasks", modern, typescript{taskClient, modern}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			meet(t, ours(t), engines(t)[0], opens{tt.client}, tt.version, cell{
				name: "links", answer: "accept", flags: []string{"--approvals", "page"},
				play: func(ctx context.Context, t *testing.T, m *meeting) {
					for name, approved := range map[string]bool{"one": true, "two": false} {
						m.touching("touch "+name, name)
						ended := make(chan error, 1)
						go func() { ended <- decide(ctx, <-m.links, approved) }()
						m.do(ctx, t, "codex", map[string]any{"prompt": "touch " + name, "approval-policy": "untrusted"}).is(t, false, "done")
						if err := <-ended; err != nil {
							t.Error(err)
						}
						m.made(t, approved, name)
					}
					m.wasAsked(t, 2)
				},
				check: func(t *testing.T, m *meeting) {
					trace := m.trace(t)
					if got, want := strings.Count(trace, "notifications/elicitation/complete"), map[string]int{legacy: 2}[tt.version]; got != want {
						t.Errorf("%d links have an end, want %d", got, want)
					}
					if !strings.Contains(trace, "/#<redacted>") {
						t.Error("no link on the wire, or with its secret in the trace")
					}
				},
			})
		})
	}
}

// decide answers the question of a link, as its page does.
func decide(ctx context.Context, link string, approve bool) error {
	origin, secret, _ := strings.Cut(link, "/#")
	token := ""
	send := func(method, path, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, method, origin+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		return http.DefaultClient.Do(r)
	}
	res, err := send("POST", "/session", fmt.Sprintf(`{"secret":%q}`, secret))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var opened struct{ Token string }
	if err := json.NewDecoder(res.Body).Decode(&opened); err != nil {
		return fmt.Errorf("%s: %w", res.Status, err)
	}
	token = opened.Token
	events, err := send("GET", "/events", "")
	if err != nil {
		return err
	}
	defer events.Body.Close()
	line, err := bufio.NewReader(events.Body).ReadBytes('\n')
	if err != nil {
		return err
	}
	var news struct {
		Conversations []struct{ Entries []struct{ ID int } }
	}
	if err := json.Unmarshal(line, &news); err != nil || len(news.Conversations) != 1 || len(news.Conversations[0].Entries) != 1 {
		return fmt.Errorf("the link has %s: %w", line, err)
	}
	action := map[bool]string{true: "accept", false: "decline"}[approve]
	res, err = send("POST", fmt.Sprint("/questions/", news.Conversations[0].Entries[0].ID), fmt.Sprintf(`{"action":%q}`, action))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the answer: %s", res.Status)
	}
	return nil
}
