package interop

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"sync"
)

// script is what a client is to do with the server. It starts it, initializes,
// does what is asked of it here, and lets it end.
type script struct {
	Command []string          `json:"command"`
	Cwd     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
	// Answer is accept, decline, cancel, or error for a handler that throws;
	// "" is a client without elicitation.
	Answer string `json:"answer"`
	List   bool   `json:"list"`
	Calls  []call `json:"calls"`
}

// call is a call of a tool.
type call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Reply     bool           `json:"reply"`    // in the thread of the call before
	Progress  bool           `json:"progress"` // asks for progress
	Cancel    bool           `json:"cancel"`   // is cancelled while it runs
}

// report is what the client saw.
type report struct {
	Server   string     `json:"server"`
	Tools    []string   `json:"tools"`
	Asked    []string   `json:"asked"` // the messages of elicitations
	Progress []progress `json:"progress"`
	Results  []result   `json:"results"`
}

type progress struct {
	Progress float64 `json:"progress"`
	Message  string  `json:"message"`
}

type result struct {
	Text     []string `json:"text"` // of each block
	IsError  bool     `json:"isError"`
	ThreadID string   `json:"threadId"`
	Failed   string   `json:"failed"` // why there is no result
}

// witness is what a Go client's handlers saw, and how they answer.
type witness struct {
	answer string

	mu       sync.Mutex
	asked    []string
	progress []progress
}

// elicit answers a question, or fails.
func (w *witness) elicit(message string) (action string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, message)
	if w.answer == "error" {
		return "", errors.New("the form is broken")
	}
	return w.answer, nil
}

func (w *witness) see(p progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = append(w.progress, p)
}

// report completes r.
func (w *witness) report(r report) report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Asked, r.Progress = slices.Clone(w.asked), slices.Clone(w.progress)
	return r
}

// command starts the server as a client's child.
func (s script) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Cwd, s.environment()
	return cmd
}

func (s script) environment() (env []string) {
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// arguments are the call's, with the thread it goes on with.
func (c call) arguments(threadID string) map[string]any {
	arguments := maps.Clone(c.Arguments)
	if c.Reply {
		arguments["threadId"] = threadID
	}
	return arguments
}

// until is the context of the call.
func (c call) until(ctx context.Context, enough <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if !c.Cancel {
		return ctx, cancel
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-enough:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-watched }
}
