package model

import (
	"strings"
	"testing"
)

// TestAnswer takes thinking in tags out of messages, and leaves what only speaks of it.
func TestAnswer(t *testing.T) {
	const same = "same"
	for _, tt := range []struct{ text, want string }{
		{"<think>\nsecret\n</think>\n\nFIN", "FIN"},
		{" \n<think>secret</think>FIN", "FIN"},
		{"<thinking>secret</thinking> FIN", "FIN"},
		{"<think>\n\n</think>\n\nFIN", "FIN"},
		{"<think>secret</think>", ""},
		{"<think>I write `</thinking>` here.</think>FIN", "FIN"},
		{"secret\n</think>\n\nFIN", "FIN"},
		{"secret</think>FIN", "FIN"},
		{"I use `x` and\n```\ncode\n```\nso\n</think>\nFIN", "FIN"},
		{"secret</thinking>FIN", "FIN"},
		{"</think>FIN", "FIN"},
		{"<think>a</think>\n<think>b</think>\nFIN", "FIN"},
		{"<think>a</think>\n</think>\nFIN", "FIN"},
		{"<think>It ends with `</think>`. So.</think>FIN", "FIN"},
		{"<think>An open `span.</think>FIN", "FIN"},
		{"<think>a</thinking>FIN", "FIN"},
		{"<THINK>a</Think>FIN", "FIN"},
		{"<seed:think>a</seed:think>FIN", "FIN"},
		{"<thought>a</thought>FIN", "FIN"},
		{"<longcat_think>a</longcat_think>\nFIN", "FIN"},
		{"<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>FIN<|END_RESPONSE|>", "FIN"},
		{"a<|END_THINKING|>FIN", "FIN"},
		{"<think time=\"3\">a</think>FIN", "FIN"},
		{"<think>a</think>FIN</think>", "FIN</think>"},
		{"<|begin_of_thought|>a</think>FIN", "FIN"},
		{"<|thinking|>a<|/thinking|>FIN", "FIN"},
		{"[THINK]a[/THINK]FIN", "FIN"},
		{"◁think▷a◁/think▷FIN", "FIN"},
		{"a◁/think▷FIN", "FIN"},
		{"<reasoning>a</reasoning><answer>FIN</answer>", "FIN"},
		{"<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>FIN<|end_of_solution|>", "FIN"},
		{"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>FIN<|return|>", "FIN"},
		{"<|channel>thought\na<channel|>FIN", "FIN"},
		{"<answer>FIN</answer>", same},
		{"FIN<|end|>", same}, {"The </answer> and the </reasoning> are tags.", same},
		{"<think>FIN", same},                         // its end is not known
		{"FIN <think>x</think>", same},               // not at the beginning
		{"The tag `</think>` ends it.", same},        // in a span
		{"The tag ``a`</think>`` ends it.", same},    // in another one
		{"```xml\n<think>a</think>\n```\nFIN", same}, // in a fence
		{"```\nsecret\n</think>\n", same},
		{"~~~\n```\n</think>\n", same},
		{"`<think>` and </think> are tags.", same},
		{`The tag "</think>" ends it.`, same},
		{"The tag (</think>) ends it.", same},
		{"FIN", same}, {"", same}, {"<thinks>a</thinks>FIN", same},
	} {
		if tt.want == same {
			tt.want = tt.text
		}
		if got := Answer(tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// leftCalls are calls of the tool shell in the markup of chat templates, as servers leave them.
var leftCalls = map[string]string{
	"Hermes":             "<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": [\"ls\"]}}\n</tool_call>",
	"Hermes, two":        "<tool_call>\n{\"name\": \"shell\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"list\", \"arguments\": {}}\n</tool_call>",
	"Hermes, open":       "<tool_call>\n{\"arguments\": {\"command\": [\"ls\"]}, \"name\": \"shell\"}",
	"Qwen 3 Coder":       "<tool_call>\n<function=shell>\n<parameter=command>\n[\"ls\"]\n</parameter>\n</function>\n</tool_call>",
	"Qwen 3, half":       "<function=shell>\n<parameter=command>\n[\"ls\"]\n</parameter>\n</function>\n</tool_call>",
	"Llama 3":            "<function=shell>{\"command\": [\"ls\"]}</function>",
	"Llama 3, python":    "<|python_tag|>{\"name\": \"shell\", \"parameters\": {\"command\": [\"ls\"]}}<|eom_id|>",
	"GLM":                "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>[\"ls\"]</arg_value>\n</tool_call>",
	"GLM, none":          "<tool_call>shell\n</tool_call>",
	"Kimi":               "<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{\"command\": [\"ls\"]}<|tool_call_end|><|tool_calls_section_end|>",
	"Kimi, inside":       "<|tool_call_begin|>functions.shell:12<|tool_call_argument_begin|>{}<|tool_call_end|>",
	"harmony":            "<|start|>assistant<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{\"command\": [\"ls\"]}<|call|>",
	"harmony, plain":     "<|channel|>commentary to=functions.shell<|message|>{\"command\": [\"ls\"]}",
	"harmony, words":     "assistantcommentary to=functions.shell json{\"command\": [\"ls\"]}",
	"DeepSeek":           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n```json\n{\"command\": [\"ls\"]}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"DeepSeek 3.1":       "<｜tool▁call▁begin｜>shell<｜tool▁sep｜>{\"command\": [\"ls\"]}<｜tool▁call▁end｜>",
	"DeepSeek 3.2":       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"shell\">\n<｜DSML｜parameter name=\"command\" string=\"false\">[\"ls\"]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
	"Mistral":            "[TOOL_CALLS][{\"name\": \"shell\", \"arguments\": {\"command\": [\"ls\"]}}]",
	"Mistral 3":          "[TOOL_CALLS]shell[CALL_ID]abc123[ARGS]{\"command\": [\"ls\"]}",
	"Mistral, args":      "[TOOL_CALLS]shell[ARGS]{\"command\": [\"ls\"]}",
	"Granite":            "<|tool_call|>[{\"name\": \"shell\", \"arguments\": {}}]",
	"Phi 4":              "<|tool_call|>[{\"name\": \"shell\", \"arguments\": {}}]<|/tool_call|>",
	"function_call":      "<function_call>\n{\"name\": \"shell\", \"arguments\": {}}\n</function_call>",
	"functioncall, open": "<functioncall> {\"name\": \"shell\", \"arguments\": {}}",
	"Qwen 2.5 Coder":     "<tools>\n{\"name\": \"shell\", \"arguments\": {}}\n</tools>",
	"MiniMax M1":         "<tool_calls>\n{\"name\": \"shell\", \"arguments\": {}}\n</tool_calls>",
	"Nemotron":           "<TOOLCALL>[{\"name\": \"shell\", \"arguments\": {}}]</TOOLCALL>",
	"Command":            "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"shell\", \"parameters\": {}}]<|END_ACTION|>",
	"InternLM":           "<|action_start|><|plugin|>\n{\"name\": \"shell\", \"parameters\": {}}<|action_end|>",
	"Seed":               "<seed:tool_call>\n<function=shell>\n<parameter=command>[\"ls\"]</parameter>\n</function>\n</seed:tool_call>",
	"Hunyuan":            "<tool_calls>\n<tool_call>shell\n```json\n{\"command\": [\"ls\"]}\n```\n</tool_call>\n</tool_calls>",
	"LFM 2":              "<|tool_call_start|>[shell(command=[\"ls\"])]<|tool_call_end|>",
	"Gemma 4":            "<|tool_call>call:shell{command:[<|\"|>ls<|\"|>]}<tool_call|>",
	"LongCat":            "<longcat_tool_call>shell\n<longcat_arg_key>command</longcat_arg_key>\n<longcat_arg_value>[\"ls\"]</longcat_arg_value>\n</longcat_tool_call>",
	"harmony, to first":  "<|start|>assistant to=functions.shell<|channel|>commentary json<|message|>{\"command\": [\"ls\"]}<|call|>",
	"harmony, analysis":  "<|channel|>analysis to=functions.shell code<|message|>{\"command\": [\"ls\"]}",
	"Hermes, wrong end":  "<tool_call>\n{\"name\": \"shell\", \"arguments\": {}}\n<tool_call>",
	"Hermes, last token": "<tool_call>\n{\"name\": \"shell\", \"arguments\": {}}\n</tool_call><|im_end|>",
	"Hermes, function":   "<tool_call>\n{\"type\": \"function\", \"function\": {\"name\": \"shell\", \"arguments\": {}}}\n</tool_call>",
	"tool_use":           "<tool_use>\n<name>shell</name>\n<arguments>{}</arguments>\n</tool_use>",
	"MiniMax":            "<minimax:tool_call>\n<invoke name=\"shell\">\n<parameter name=\"command\">[\"ls\"]</parameter>\n</invoke>\n</minimax:tool_call>",
}

// TestTextCall finds calls that a server left in the text, with or without prose before them, and takes what shows a call
// for an answer.
func TestTextCall(t *testing.T) {
	tools := []Tool{{Name: "shell"}, {Name: "list"}}
	for name, call := range leftCalls {
		for _, text := range []string{call, "I will look.\n\n" + call + "\n", "Use `ls`:\n" + call} {
			if got := TextCall(text, tools); got != "shell" {
				t.Errorf("%s: %q in %q", name, got, text)
			}
		}
		for what, text := range map[string]string{
			"an example":      "Write it so:\n```\n" + call + "\n```",
			"an open fence":   "Write it so:\n```\n" + call,
			"a span":          "Write `" + call + "` there.",
			"prose behind it": call + "\nThat is how a call looks.",
			"another tool":    strings.ReplaceAll(call, "shell", "browse"),
		} {
			if got := TextCall(text, tools); got != "" && (what != "another tool" || got != "list") {
				t.Errorf("%s, %s: %q in %q", name, what, got, text)
			}
		}
	}
	if got := TextCall(`<tool_call>{"name": "sh\u0065ll", "arguments": {"command": ["\u6e2c"]}}</tool_call>`, tools); got != "shell" {
		t.Errorf("escapes: %q", got)
	}
	for _, text := range []string{"", "FIN", `{"name": "shell", "arguments": {}}`, "<tool_call>", "<tool_call>\nnothing\n</tool_call>", "The marker [TOOL_CALLS] begins one.", "shell"} {
		if got := TextCall(text, tools); got != "" {
			t.Errorf("%q in %q", got, text)
		}
	}
}
