package protocol_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func Example() {
	b, err := protocol.AppendEvent(nil, protocol.AgentMessage{Message: "done"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(b))

	m, err := protocol.ParseEvent([]byte(`{"type":"exec_command_begin","call_id":"c1","command":["ls"],"cwd":"/work","parsed_cmd":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.(protocol.ExecCommandBegin).Command)
	// Output:
	// {"type":"agent_message","message":"done"}
	// [ls]
}
