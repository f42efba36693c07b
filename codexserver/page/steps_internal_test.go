package page

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestEachEvent checks after each event what a browser gets that has read all before: the state of
// the conversation, and the entries that have changed. Of a change that is not sent it would know
// nothing until the next one.
func TestEachEvent(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	me := approval.Thread{ID: "t"}
	failure := "no such tool"
	exec := func(id string) protocol.ExecCommandBegin {
		return protocol.ExecCommandBegin{CallID: id, Command: []string{"make"}, Cwd: "/w"}
	}
	var got strings.Builder
	seen := uint64(0)
	for _, m := range []protocol.EventMsg{
		protocol.SessionConfigured{SessionID: "t", Model: "m", InitialMessages: []json.RawMessage{
			[]byte(`{"type":"user_message","message":"before"}`), []byte(`{"type":"task_started"}`), []byte(`{"type":"no`),
			[]byte(`{"type":"exec_command_begin","call_id":"0","command":["old"],"cwd":"/"}`),
		}},
		protocol.TaskStarted{},
		protocol.UserMessage{Message: "go"},
		protocol.AgentReasoningDelta{Delta: "thin"},
		protocol.AgentReasoningSectionBreak{},
		protocol.AgentReasoningDelta{Delta: "king"},
		protocol.AgentReasoning{Text: "thinking"},
		protocol.AgentReasoningSectionBreak{}, // of nothing
		protocol.AgentReasoningDelta{Delta: "anew"},
		protocol.AgentMessageDelta{Delta: "hel"},
		protocol.AgentMessageDelta{Delta: "lo"},
		protocol.AgentMessage{Message: "hello"},
		protocol.AgentMessageDelta{Delta: "next"},
		protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "one", Status: "pending"}}, Explanation: &failure},
		protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "one", Status: "completed"}}},
		exec("1"),
		protocol.ExecCommandOutputDelta{CallID: "1", Chunk: []byte("out")},
		protocol.ExecCommandEnd{CallID: "1", ExitCode: 3, AggregatedOutput: "output"},
		protocol.ExecCommandOutputDelta{CallID: "1", Chunk: []byte("late")},
		protocol.ExecCommandEnd{CallID: "1", ExitCode: 4},
		protocol.PatchApplyBegin{CallID: "2", Changes: map[string]protocol.FileChange{"/w/a": {Add: &protocol.FileContent{Content: "x"}}}},
		protocol.PatchApplyEnd{CallID: "2", Success: true, Stdout: "fine"},
		protocol.PatchApplyBegin{CallID: "3"},
		protocol.PatchApplyEnd{CallID: "3", Stderr: "it does not fit"},
		protocol.MCPToolCallBegin{CallID: "4", Invocation: protocol.MCPInvocation{Server: "s", Tool: "t"}},
		protocol.MCPToolCallEnd{CallID: "4", Invocation: protocol.MCPInvocation{Server: "s", Tool: "t"}, Result: protocol.MCPToolCallResult{Err: &failure}},
		protocol.TurnDiff{UnifiedDiff: "-x"},
		protocol.TurnDiff{UnifiedDiff: "+y"},
		protocol.BackgroundEvent{Message: "a remark"},
		protocol.BackgroundEvent{Refused: &protocol.Refused{Reason: "never"}},
		protocol.BackgroundEvent{},
		exec("5"),
		protocol.TaskComplete{Incomplete: "it is cut"},
		protocol.UserMessage{Message: "again"},
		exec("6"),
		protocol.Error{Message: "a fault"},
		protocol.TaskComplete{},
		protocol.UserMessage{Message: "more"},
		exec("7"),
		protocol.TurnAborted{},
		protocol.TaskStarted{},
		protocol.ShutdownComplete{},
	} {
		_, _, changed := p.board.since(seen)
		p.Event(me, m)
		u, now, _ := p.board.since(seen)
		seen = now
		fmt.Fprintf(&got, "%s:", m.EventType())
		select {
		case <-changed:
		default:
			got.WriteString(" unchanged")
		}
		for _, c := range u.Conversations {
			got.WriteString(" " + c.State)
			for _, e := range c.Entries {
				fmt.Fprintf(&got, " | %s %s%q", e.Kind, e.Title, e.Text)
				if e.Running {
					got.WriteString(" running")
				}
				if e.Exit != nil {
					fmt.Fprintf(&got, " exit %d", *e.Exit)
				}
				for _, s := range e.Steps {
					got.WriteString(" " + s.Step + " " + s.Status)
				}
			}
		}
		got.WriteString("\n")
	}
	const want = `session_configured:  | user "before" | command old""
task_started: running
user_message: running | user "go"
agent_reasoning_delta: running | reasoning "thin"
agent_reasoning_section_break: running | reasoning "thin\n\n"
agent_reasoning_delta: running | reasoning "thin\n\nking"
agent_reasoning: running | reasoning "thinking"
agent_reasoning_section_break: unchanged
agent_reasoning_delta: running | reasoning "anew"
agent_message_delta: running | agent "hel"
agent_message_delta: running | agent "hello"
agent_message: running | agent "hello"
agent_message_delta: running | agent "next"
plan_update: running | plan "no such tool" one pending
plan_update: running | plan "" one completed
exec_command_begin: running | command make"" running
exec_command_output_delta: running | command make"out" running
exec_command_end: running | command make"output" exit 3
exec_command_output_delta: unchanged
exec_command_end: unchanged
patch_apply_begin: running | patch "" running
patch_apply_end: running | patch "" exit 0
patch_apply_begin: running | patch "" running
patch_apply_end: running | patch "it does not fit" exit 1
mcp_tool_call_begin: running | tool s/t"" running
mcp_tool_call_end: running | tool s/t"\nno such tool" exit 1
turn_diff: running | diff "-x"
turn_diff: running | diff "+y"
background_event: running | note "a remark"
background_event: running | note "Refused by the engine: never"
background_event: running | note ""
exec_command_begin: running | command make"" running
task_complete:  | command make"" | end "The answer is incomplete: it is cut"
user_message: running | user "again"
exec_command_begin: running | command make"" running
error: running | error "a fault"
task_complete:  | command make""
user_message: running | user "more"
exec_command_begin: running | command make"" running
turn_aborted:  | command make"" | end "Stopped"
task_started: running
shutdown_complete: closed
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLimits pins what a program without a token can take of the page, and how long a secret works.
func TestLimits(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	l := make(pipes)
	p.listen(l)
	s := p.server
	if s.ReadHeaderTimeout != 5*time.Second || s.ReadTimeout != 10*time.Second || s.WriteTimeout != 10*time.Second || s.IdleTimeout != time.Minute || s.MaxHeaderBytes != 64<<10 ||
		maxStrangers != 256 || maxBody != 32<<10 {
		t.Errorf("%v, %v, %v, %v, %d bytes; %d connections, %d bytes", s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout, s.MaxHeaderBytes, maxStrangers, maxBody)
	}
	if p.door.lifetime != time.Hour || sessionLifetime != 72*time.Hour || maxLinks != 8 || maxSessions != 16 {
		t.Errorf("a link works for %v, a token for %v; %d links, %d tokens", p.door.lifetime, sessionLifetime, maxLinks, maxSessions)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); err != net.ErrClosed {
		t.Errorf("the listener is open: %v", err)
	}
}
