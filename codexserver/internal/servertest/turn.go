package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Echo is a turn that answers with its prompt.
func Echo(_ context.Context, host engine.Host, in []protocol.InputItem) error {
	if len(in) > 0 {
		host.Emit(protocol.AgentMessage{Message: in[0].Text})
	}
	return nil
}

// AskExec is a turn that asks about the command "git init" and answers with the decision.
func AskExec(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	out := host.Ask(ctx, approval.Command{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"})
	if out.Decision == elicit.Abort {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New(out.ForModel())}
	}
	host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
	return nil
}

// Script returns the turn of a new [Worker].
func Script() engine.TurnFunc { return new(Worker).Turn }

// Worker runs turns that do what their prompt says, word by word:
//
//	say:x         says x
//	wait:2m       waits
//	spend:5       has used 5 tokens more
//	write:x       makes the file x in the working folder, with the content "x\n"
//	fail:x        fails with the message x
//	form          asks a question other than an approval
//	a+b           asks about the commands a and b at once
//
// The answer has the words of say, and how each question was decided.
type Worker struct {
	spent       record[int64]
	ran         record[string]
	begun, over record[struct{}]
}

// Engine returns an engine without optional interfaces.
func (w *Worker) Engine() engine.Engine { return engine.TurnFunc(w.Turn) }

// Did returns how many turns there were, and the commands that were run.
func (w *Worker) Did() string {
	return strings.TrimSpace(fmt.Sprint(len(w.begun.list())) + " " + strings.Join(w.ran.list(), " "))
}

// Ended reports whether every turn has ended.
func (w *Worker) Ended() bool { return len(w.over.list()) == len(w.begun.list()) }

// Turn is an [engine.TurnFunc].
func (w *Worker) Turn(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
	w.begun.add(struct{}{})
	defer w.over.add(struct{}{})
	var said []string
	for word := range strings.FieldsSeq(protocol.TextOf(in)) {
		kind, rest, _ := strings.Cut(word, ":")
		switch kind {
		case "say":
			host.Emit(protocol.AgentMessage{Message: rest})
			said = append(said, rest)
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				return err
			}
			if err := Wait(ctx, d); err != nil {
				return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
			}
		case "spend":
			n, err := strconv.ParseInt(rest, 10, 64)
			if err != nil {
				return err
			}
			host.Emit(protocol.TokenCount{Info: w.spend(n)})
			if ctx.Err() != nil {
				return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
			}
		case "write":
			if err := os.WriteFile(filepath.Join(engine.ConfigOf(ctx).Cwd, rest), []byte(rest+"\n"),
				0o644); err != nil {
				return err
			}
		case "fail":
			return errors.New(rest)
		case "form":
			f, err := approval.ServerQuestion("toy", json.RawMessage(`{"message":"Name?"}`))
			if err != nil {
				return err
			}
			answer, err := host.Elicit(ctx, f)
			said = append(said, fmt.Sprintf("form: %s %v", string(answer), err))
		default:
			decided, err := w.askAll(ctx, host, strings.Split(word, "+"))
			if err != nil {
				return err
			}
			said = append(said, decided...)
		}
	}
	host.Emit(protocol.AgentMessage{Message: strings.Join(said, ", ")})
	return nil
}

func (w *Worker) spend(n int64) *protocol.TokenUsageInfo {
	var total protocol.TokenUsage
	for _, one := range w.spent.add(n) {
		total.InputTokens, total.OutputTokens = total.InputTokens+one-1, total.OutputTokens+1
	}
	return &protocol.TokenUsageInfo{TotalTokenUsage: total,
		LastTokenUsage: protocol.TokenUsage{InputTokens: n - 1, OutputTokens: 1}}
}

func (w *Worker) askAll(ctx context.Context, host engine.Host, commands []string) (said []string, err error) {
	var all sync.WaitGroup
	outcomes := make([]elicit.Outcome, len(commands))
	for i, command := range commands {
		all.Go(func() {
			outcomes[i] = host.Ask(ctx, approval.Command{CallID: "c", Command: []string{command}, Cwd: "/work"})
			if outcomes[i].Decision == elicit.Approved {
				w.ran.add(command)
			}
		})
	}
	all.Wait()
	for i, out := range outcomes {
		if out.Decision == elicit.Abort {
			return nil, &engine.AbortError{Reason: protocol.AbortInterrupted,
				Cause: errors.Join(context.Cause(ctx), errors.New(out.ForModel()))}
		}
		said = append(said, commands[i]+": "+string(out.Decision))
	}
	return said, nil
}
