package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// limit ends what hangs. A busy machine takes long to start clients.
const limit = 3 * time.Minute

// codex042 returns the command of the server of September 2025.
func codex042(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("CODEX_NPM")
	bin := filepath.Join(dir, "codex-0.42.0", "node_modules", "@openai", "codex", "vendor", "x86_64-unknown-linux-musl", "codex", "codex")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("Codex 0.42.0 is missing (.ci/run install does it): %v", err)
	}
	return []string{bin, "mcp", "serve"}
}

// TestRolloutsGoBothWays has one server make a conversation, and the other list and continue
// it.
func TestRolloutsGoBothWays(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"chat", "responses"} {
		for _, tt := range []struct {
			name       string
			makes, has func(*testing.T) []string
			goesOn     func(s *server, t *testing.T, id string)
		}{
			{"theirs then ours", codex042, ours, (*server).reply},
			{"ours then theirs", ours, codex042, (*server).resume},
		} {
			t.Run(wire+"/"+tt.name, func(t *testing.T) {
				model := providertest.New(
					providertest.Call(providertest.Shell("call_1", "echo", "from the command")),
					providertest.Say("the first answer"), providertest.Say("the second answer"))
				defer model.Close()
				home := newHome(t, model, wire)

				first := connect(t, home, tt.makes(t))
				id, rollout := first.start(t)
				first.say(t, id, "the first prompt", "the first answer")
				first.wrote(t, rollout, "the first answer")
				first.close(t)

				second := connect(t, home, tt.has(t))
				tt.goesOn(second, t, id)
				second.close(t)

				requests := model.Requests()
				last := string(requests[len(requests)-1].Body)
				for _, part := range []string{"the first prompt", "from the command", "the first answer", "the second prompt"} {
					if !strings.Contains(last, part) {
						t.Errorf("the last request lacks %q:\n%s", part, last)
					}
				}
			})
		}
	}
}

func newHome(t *testing.T, model *providertest.Server, wire string) string {
	t.Helper()
	home := t.TempDir()
	config := fmt.Sprintf(`model = "mock-model"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = %q
`, model.BaseURL(), wire)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// server is a running server and the answers of its turns.
type server struct {
	*jsonrpc.Peer
	answers chan string // of each turn that is complete
	ended   chan error
}

func connect(t *testing.T, home string, argv []string) *server {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home, "TERM=xterm"}
	transport, err := jsonrpc.Command(cmd, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{answers: make(chan string, 16), ended: make(chan error, 1)}
	mux := &jsonrpc.Mux{}
	jsonrpc.HandleNotify(mux, "codex/event/task_complete", func(_ context.Context, p struct {
		Msg protocol.TaskComplete `json:"msg"`
	}) error {
		if p.Msg.LastAgentMessage != nil {
			s.answers <- *p.Msg.LastAgentMessage
		}
		return nil
	})
	s.Peer = jsonrpc.NewPeer(transport, mux, &jsonrpc.Options{LenientVersion: true})
	go func() { s.ended <- s.Run(context.Background()) }()
	s.ask(t, "initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "interop", "version": "1"},
	}, nil)
	return s
}

func (s *server) ask(t *testing.T, method string, params, result any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := s.Call(ctx, method, params, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func (s *server) start(t *testing.T) (id, path string) {
	t.Helper()
	var r protocol.NewConversationResult
	s.ask(t, "newConversation", struct{}{}, &r)
	s.listen(t, r.ConversationID)
	return r.ConversationID, r.RolloutPath
}

func (s *server) listen(t *testing.T, id string) {
	t.Helper()
	s.ask(t, "addConversationListener", protocol.AddConversationListenerParams{ConversationID: id}, nil)
}

func (s *server) say(t *testing.T, id, text, want string) {
	t.Helper()
	s.ask(t, "sendUserMessage", protocol.SendUserMessageParams{ConversationID: id, Items: protocol.TextInput(text)}, nil)
	select {
	case got := <-s.answers:
		if got != want {
			t.Errorf("%q was answered %q, want %q", text, got, want)
		}
	case <-time.After(limit):
		t.Fatalf("%q was not answered", text)
	}
}

// wrote waits for an answer in a rollout, as an item and as an event, or more. The Codex of
// September 2025 writes with a delay, and loses at its end what it has not written.
func (s *server) wrote(t *testing.T, rollout, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		content, err := os.ReadFile(rollout)
		if err == nil && strings.Count(string(content), answer) >= 2 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%q is not in the rollout: %v\n%s", answer, err, content)
		}
	}
}

// resume lists and continues a conversation by the methods of Codex.
func (s *server) resume(t *testing.T, id string) {
	t.Helper()
	var listed struct {
		Items []struct {
			ID      string `json:"conversationId"`
			Path    string `json:"path"`
			Preview string `json:"preview"`
		} `json:"items"`
	}
	s.ask(t, "listConversations", struct{}{}, &listed)
	if len(listed.Items) != 1 || listed.Items[0].ID != id || listed.Items[0].Preview != "the first prompt" {
		t.Fatalf("listed: %+v", listed.Items)
	}
	var r struct {
		ConversationID  string          `json:"conversationId"`
		InitialMessages json.RawMessage `json:"initialMessages"`
	}
	s.ask(t, "resumeConversation", map[string]any{"path": listed.Items[0].Path}, &r)
	if r.ConversationID != id {
		t.Errorf("resumed %s as %s", id, r.ConversationID)
	}
	for _, part := range []string{"the first prompt", "the first answer"} {
		if !strings.Contains(string(r.InitialMessages), part) {
			t.Errorf("the initial messages lack %q: %s", part, r.InitialMessages)
		}
	}
	s.listen(t, id)
	s.say(t, id, "the second prompt", "the second answer")
}

// reply lists and continues a conversation by the tools of our server.
func (s *server) reply(t *testing.T, id string) {
	t.Helper()
	var listed struct {
		Structured struct {
			Conversations []struct {
				ID      string `json:"threadId"`
				Preview string `json:"preview"`
			} `json:"conversations"`
		} `json:"structuredContent"`
	}
	s.ask(t, "tools/call", map[string]any{"name": "codex-list", "arguments": map[string]any{}}, &listed)
	if all := listed.Structured.Conversations; len(all) != 1 || all[0].ID != id || all[0].Preview != "the first prompt" {
		t.Fatalf("listed: %+v", all)
	}
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	s.ask(t, "tools/call", map[string]any{"name": "codex-reply", "arguments": map[string]any{"threadId": id, "prompt": "the second prompt"}}, &r)
	if len(r.Content) == 0 || r.Content[0].Text != "the second answer" {
		t.Errorf("answered %+v", r.Content)
	}
}

func (s *server) close(t *testing.T) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("run: %v", err)
	}
}
