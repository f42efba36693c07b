package interop

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// setup is how a client starts the server, or finds the one that runs.
type setup struct {
	remote
	Command []string          `json:"command"`
	Cwd     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
	// Asks declares to the server that questions can be shown.
	Asks bool `json:"asks"`
	// Dir is a folder for the client's files, Codex the path of the newest Codex.
	Dir   string `json:"-"`
	Codex string `json:"-"`
}

// command starts the server as a client's child.
func (s setup) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Cwd, s.environment()
	return cmd
}

func (s setup) environment() (env []string) {
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// call is a call of a tool.
type call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Progress  bool           `json:"progress"` // asks for progress
}

// result is what a tool answered.
type result struct {
	Content    []block `json:"content"`
	IsError    bool    `json:"isError"`
	Structured struct {
		ThreadID string `json:"threadId"`
		Status   string `json:"status"`
		// Of codex-wait.
		Threads []struct {
			ThreadID string `json:"threadId"`
			Status   string `json:"status"`
			Content  string `json:"content"`
		} `json:"threads"`
		// Of codex-list.
		Conversations []struct {
			ThreadID string `json:"threadId"`
		} `json:"conversations"`
	} `json:"structuredContent"`
}

type block struct {
	Text string `json:"text"`
}

// asResult reads an answer in the form that a client returns to its caller.
func asResult(answer any) (r result, err error) {
	encoded, err := json.Marshal(answer)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(encoded, &r)
}

type toolList struct {
	Tools []named `json:"tools"`
}

type named struct {
	Name string `json:"name"`
}

func (l toolList) names() (names []string) {
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return names
}

type progress struct {
	Progress float64 `json:"progress"`
	Message  string  `json:"message"`
}

// witness records what a client's handlers see, and says how they answer.
type witness struct {
	// answer is accept, decline, cancel, or error for a handler that fails.
	answer string
	// decisions are the decisions for a form, one for each question. Then answer is accept.
	decisions []string
	// together makes a question wait some seconds for another one.
	together bool

	mu       sync.Mutex
	asked    []string
	second   chan struct{} // closed when the second of two questions has come
	progress []progress
}

// elicit answers a question, or fails.
func (w *witness) elicit(ctx context.Context, message string) (action string, err error) {
	w.mu.Lock()
	w.asked = append(w.asked, message)
	if len(w.asked)%2 == 1 {
		w.second = make(chan struct{})
	} else {
		close(w.second)
	}
	second := w.second
	w.mu.Unlock()
	if w.together {
		select {
		case <-second:
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
	}
	if w.answer == "error" {
		return "", errors.New("the form is broken")
	}
	if n := len(w.decisions); n > 0 {
		return w.decisions[min(w.number(), n)-1], nil
	}
	return w.answer, nil
}

// number returns how many questions were asked.
func (w *witness) number() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// filledIn returns the action of an answer, and the content of the form: an answer other than
// an action is a decision.
func filledIn(answer string) (action string, content map[string]any) {
	switch answer {
	case "accept", "decline", "cancel", "":
		return answer, nil
	}
	return "accept", map[string]any{"decision": answer}
}

func (w *witness) see(p progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = append(w.progress, p)
}

// seen are the questions and the progress so far.
func (w *witness) seen() ([]string, []progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked), slices.Clone(w.progress)
}
