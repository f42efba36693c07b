package turnlog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// question and decision stand for a question among events.
type question struct{ protocol.EventMsg }
type decision struct{ protocol.EventMsg }

// none is that the model is not waited for.
const none = -1

func TestClock(t *testing.T) {
	begun, run, ran := protocol.TaskStarted{}, protocol.ExecCommandBegin{CallID: "1"}, protocol.ExecCommandEnd{CallID: "1"}
	for name, tt := range map[string]struct {
		events []protocol.EventMsg // one a minute
		want   int                 // minutes of silence a minute after the last one
	}{
		"no turn":                {[]protocol.EventMsg{protocol.SessionConfigured{}, protocol.AgentMessage{}}, none},
		"a turn begins":          {[]protocol.EventMsg{begun}, 1},
		"words":                  {[]protocol.EventMsg{begun, protocol.AgentMessageDelta{}}, 1},
		"thoughts":               {[]protocol.EventMsg{begun, protocol.AgentReasoningDelta{}}, 1},
		"no words of the model":  {[]protocol.EventMsg{begun, protocol.BackgroundEvent{}, protocol.StreamError{}, protocol.UserMessage{}, protocol.TokenCount{}}, 5},
		"a command":              {[]protocol.EventMsg{begun, run}, none},
		"a command that prints":  {[]protocol.EventMsg{begun, run, protocol.ExecCommandOutputDelta{CallID: "1"}}, none},
		"a command has ended":    {[]protocol.EventMsg{begun, run, ran}, 1},
		"one of two commands":    {[]protocol.EventMsg{begun, protocol.ExecCommandBegin{CallID: "2"}, run, ran}, none},
		"a command goes on":      {[]protocol.EventMsg{begun, run, protocol.AgentMessage{}, protocol.ExecCommandOutputDelta{CallID: "1"}}, 2},
		"and ends":               {[]protocol.EventMsg{begun, run, protocol.AgentMessage{}, ran}, 2},
		"a tool":                 {[]protocol.EventMsg{begun, protocol.MCPToolCallBegin{CallID: "1"}}, none},
		"a tool has ended":       {[]protocol.EventMsg{begun, protocol.MCPToolCallBegin{CallID: "1"}, protocol.MCPToolCallEnd{CallID: "1"}}, 1},
		"a patch":                {[]protocol.EventMsg{begun, protocol.PatchApplyBegin{CallID: "1"}}, none},
		"a patch has ended":      {[]protocol.EventMsg{begun, protocol.PatchApplyBegin{CallID: "1"}, protocol.PatchApplyEnd{CallID: "1"}}, 1},
		"a question":             {[]protocol.EventMsg{begun, question{}}, none},
		"one of two questions":   {[]protocol.EventMsg{begun, question{}, question{}, decision{}}, none},
		"a question was decided": {[]protocol.EventMsg{begun, question{}, decision{}}, 1},
		"the turn ends":          {[]protocol.EventMsg{begun, run, protocol.TaskComplete{}}, none},
		"the turn is aborted":    {[]protocol.EventMsg{begun, protocol.TurnAborted{}}, none},
		"the turn fails":         {[]protocol.EventMsg{begun, protocol.Error{}}, none},
		"between turns":          {[]protocol.EventMsg{begun, protocol.TaskComplete{}, run, ran}, none},
		"the next turn":          {[]protocol.EventMsg{begun, run, protocol.TurnAborted{}, begun}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, turn := newLog(t), turnlog.NewTurn()
				var open []*approval.Request
				for _, m := range tt.events {
					switch m.(type) {
					case question:
						open = append(open, &approval.Request{Question: &elicit.Question{}})
						log.Asked(turn, open[len(open)-1])
					case decision:
						log.Decided(turn, open[0], approval.Decision{})
						open = open[1:]
					default:
						log.Add(turn, "", m)
					}
					<-time.After(time.Minute)
				}
				got := none
				if since := log.Silent(); !since.IsZero() {
					got = int(time.Since(since) / time.Minute)
				}
				if got != tt.want {
					t.Errorf("%d minutes of silence, want %d", got, tt.want)
				}
			})
		})
	}
}

func TestLimit(t *testing.T) {
	for option, want := range map[time.Duration]time.Duration{0: setting.DefaultStall, -1: 0, time.Second: time.Second} {
		if got := turnlog.StallLimit(option); got != want {
			t.Errorf("%v means %v, want %v", option, got, want)
		}
	}
}
