package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// tasksOptions are the options of codex-mcp tasks.
type tasksOptions struct {
	id     string // "" means all tasks
	follow bool
}

func (o *options) tasksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks [flags] [ID]",
		Short: "List the tasks of clients, or show one",
		Long: `Lists the tasks of all servers with the same $CODEX_HOME, the newest first. A
finished task stays in the list for a day. With an id, or the beginning of an id, it
shows that task and its result. It changes nothing.`,
		RunE: func(_ *cobra.Command, args []string) error {
			o.run = showTasks
			if len(args) > 1 {
				return fmt.Errorf("tasks: want one ID, found %q", strings.Join(args, " "))
			}
			if len(args) > 0 {
				o.tasks.id = args[0]
			} else if o.tasks.follow {
				return errors.New("--follow: want the id of a task; codex-mcp tasks lists the ids")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&o.tasks.follow, "follow", "f", false, "show the progress of the task until it ends")
	cmd.Flags().BoolVar(&o.json, "json", false, "print each task as one line of JSON")
	return cmd
}

// showTasks runs codex-mcp tasks.
func showTasks(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	home, err := config.Home(os.Getenv)
	if err != nil {
		return fail(stderr, err)
	}
	v := &taskViewer{store: taskfile.New(home, nil), out: stdout, json: o.json, now: time.Now}
	if o.tasks.id == "" {
		err = v.list()
	} else {
		err = v.show(ctx, o.tasks.id, o.tasks.follow)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return terminal.StatusInterrupted
	case errors.Is(err, errUnanswered):
		return 1
	case err != nil:
		return fail(stderr, err)
	}
	return 0
}

// taskViewer reads the tasks of a home.
type taskViewer struct {
	store *taskfile.Store
	out   io.Writer
	json  bool
	now   func() time.Time
}

// errUnanswered means that a task has ended without an answer.
var errUnanswered = errors.New("the task has ended without an answer")

// list shows all tasks. It reports files that cannot be read after the tasks.
func (v *taskViewer) list() error {
	entries, err := v.store.List()
	var b bytes.Buffer
	for _, e := range entries {
		if v.json {
			v.line(&b, e.Task, e.Owner)
			continue
		}
		fmt.Fprintf(&b, "%-14s %6s  %s\n", state(e.Task, e.Owner), age(v.now().Sub(e.Task.Created)), doing(e.Task, e.Owner))
		fmt.Fprintf(&b, "  %s\n", e.Task.ID)
	}
	if len(entries) == 0 && err == nil && !v.json {
		b.WriteString("no tasks\n")
	}
	_, werr := v.out.Write(b.Bytes())
	return errors.Join(err, werr)
}

// tick is the time between two looks at a task with --follow.
const tick = time.Second

// show shows one task. With follow, it then shows each change until the task ends.
func (v *taskViewer) show(ctx context.Context, name string, follow bool) error {
	id, err := v.find(name)
	if err != nil {
		return err
	}
	last := ""
	for first := true; ; first = false {
		t, owner, err := v.store.Get(id)
		if err != nil {
			return err
		}
		over := owner == taskfile.NoOwner || state(t, owner) == lost
		var b bytes.Buffer
		switch now := state(t, owner) + "  " + doing(t, owner); {
		case v.json:
			v.line(&b, t, owner)
			now = b.String()
			if now == last {
				b.Reset()
			}
			last = now
		case first:
			v.card(&b, t, owner)
			last = now
		case now != last:
			fmt.Fprintf(&b, "%s  %s\n", v.now().Format(time.TimeOnly), now)
			last = now
		}
		if over && !v.json {
			if text := answer(t.Result); text != "" {
				fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(terminal.Prose(text), "\n"))
			}
		}
		if _, err := v.out.Write(b.Bytes()); err != nil {
			return err
		}
		switch {
		case over && !answered(t):
			return errUnanswered
		case over, !follow:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-time.After(tick):
		}
	}
}

// find returns the id of the one task whose id is name, or begins with it.
func (v *taskViewer) find(name string) (string, error) {
	if _, _, err := v.store.Get(name); !errors.Is(err, taskfile.ErrUnknown) {
		return name, err
	}
	entries, err := v.store.List()
	found := ""
	for _, e := range entries {
		switch {
		case !strings.HasPrefix(e.Task.ID, name):
		case found != "":
			return "", fmt.Errorf("several tasks have ids that begin with %q; write more of the id", name)
		default:
			found = e.Task.ID
		}
	}
	if found == "" {
		return "", cmp.Or(err, fmt.Errorf("%w %.200q; codex-mcp tasks lists the ids", taskfile.ErrUnknown, name))
	}
	return found, nil
}

// card shows everything about a task except its result.
func (v *taskViewer) card(b *bytes.Buffer, t taskfile.Task, owner taskfile.Owner) {
	row := func(name, value string) { fmt.Fprintf(b, "%-8s %s\n", name, value) }
	row("task", t.ID)
	row("thread", t.Thread())
	row("tool", terminal.Row(t.Tool))
	row("status", state(t, owner))
	row("doing", terminal.Row(message(t, owner)))
	row("began", t.Created.Local().Format(time.DateTime)+", "+age(v.now().Sub(t.Created))+" ago")
	if t.Status.Finished() {
		row("took", age(t.Updated.Sub(t.Created)))
		row("kept", "until "+t.Expires.Local().Format(time.DateTime))
	}
	row("server", server(t, owner))
}

// taskLine is a task in JSON.
type taskLine struct {
	ID       string          `json:"id"`
	ThreadID string          `json:"threadId"`
	Tool     string          `json:"tool"`
	Status   string          `json:"status"`
	Message  string          `json:"message"`
	Created  time.Time       `json:"created"`
	Updated  time.Time       `json:"updated"`
	Expires  time.Time       `json:"expires,omitzero"`
	Server   taskfile.Server `json:"server"`
	Serves   bool            `json:"serves"` // the server is running and has the task
	Result   jsontext.Value  `json:"result,omitzero"`
}

func (v *taskViewer) line(b *bytes.Buffer, t taskfile.Task, owner taskfile.Owner) {
	raw, err := json.Marshal(taskLine{
		t.ID, t.Thread(), t.Tool, state(t, owner), message(t, owner), t.Created, t.Updated, t.Expires, t.Server, owner == taskfile.Other, t.Result,
	})
	if err == nil { // a task that was read can always be encoded
		b.WriteString(terminal.Line(raw))
	}
}

// The states of a task whose server is gone.
const (
	lost = "lost" // no other server continues it
	cut  = "cut"  // the next one does
)

func state(t taskfile.Task, owner taskfile.Owner) string {
	switch {
	case owner != taskfile.Gone:
		return string(t.Status)
	case t.Resume != nil:
		return cut
	}
	return lost
}

func message(t taskfile.Task, owner taskfile.Owner) string {
	switch state(t, owner) {
	case lost:
		return "the server ended while this task ran; codex-reply continues its thread"
	case cut:
		return "the server ended while this task ran; the next server continues it, unless tasks.resume is false"
	}
	return t.Message
}

// doing returns the text of a task in a row.
func doing(t taskfile.Task, owner taskfile.Owner) string {
	words := terminal.Row(message(t, owner))
	if owner == taskfile.Other {
		words += " (" + server(t, owner) + ")"
	}
	return words
}

func server(t taskfile.Task, owner taskfile.Owner) string {
	words := fmt.Sprintf("process %d", t.Server.PID)
	if host, _ := os.Hostname(); t.Server.Host != host {
		words += " on " + terminal.Row(t.Server.Host)
	}
	if owner == taskfile.Gone {
		words += ", which has ended"
	}
	return words
}

// taskResult is the part of a tool's result that is shown.
type taskResult struct {
	Content []struct {
		Text        string `json:"text"`
		Annotations struct {
			Audience []string `json:"audience"`
		} `json:"annotations"`
	} `json:"content"`
	IsError bool `json:"isError"`
}

func answer(raw jsontext.Value) string {
	var r taskResult
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return ""
	}
	var texts []string
	for _, c := range r.Content {
		if !slices.Equal(c.Annotations.Audience, []string{"assistant"}) { // such a block is only for models
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func answered(t taskfile.Task) bool {
	var r taskResult
	return t.Status == taskfile.Completed && json.Unmarshal(t.Result, &r) == nil && !r.IsError
}

// age returns a duration in a short form for users.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
