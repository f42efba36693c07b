package model

import (
	"slices"
	"strings"
)

// phrase is words with which providers refuse a request, and what they mean. An answer has all the parts, in small
// letters.
type phrase struct {
	means without
	by    string // who says it
	parts []string
	but   string // what the answer does not say; "" is nothing
}

// in reports whether an answer has the words.
func (p *phrase) in(answer string) bool {
	said := strings.ToLower(answer[:min(len(answer), maxCompared)])
	return !slices.ContainsFunc(p.parts, func(part string) bool { return !strings.Contains(said, part) }) &&
		(p.but == "" || !strings.Contains(answer, p.but))
}

// maxCompared is how much of an answer is compared. What follows may quote the request.
const maxCompared = 2000

// said reports whether an answer has words with this meaning.
func (w without) said(answer string) bool {
	return slices.ContainsFunc(refusals, func(r phrase) bool { return r.means == w && r.in(answer) })
}

// Meanings for which there is no other form of a request. testdata/errors.json has messages and their sources.
const (
	tooLong  without = 1 << (iota + 28) // the model cannot hold the request
	tooOften                            // a rate limit, whatever the status
	badKey                              // the key is wrong, whatever the status
	noScope                             // the key may not read the list of models
)

// several says what more than two providers say.
const several = "several"

// refusals are the words. Of the forms of a request, the first row counts that fits, and without which the request is another
// one.
var refusals = []phrase{
	{images, "llama.cpp", []string{"image input is not supported"}, ""},
	{images, "OpenRouter, Ollama", []string{"support image input"}, ""},
	{images, "LM Studio", []string{"does not support images"}, ""},
	{images, "vLLM", []string{"is not a multimodal model"}, ""},
	{images, "DeepSeek", []string{"unknown variant", "image"}, ""},
	{images, "DeepSeek, of 2025", []string{"untagged enum chatcompletionrequestcontent"}, ""},
	{images, "DeepSeek, of 2025", []string{"invalid type: sequence, expected a string"}, ""},
	{images, "OpenAI", []string{"image_url is only supported by certain models"}, ""},
	{images, "Gemini", []string{"image input modality is not enabled"}, ""},
	{images, "OpenAI, of one that is broken", []string{"unsupported image"}, ""},
	{images, "OpenAI, of one that is broken", []string{"invalid image"}, ""},
	{images, "Anthropic", []string{"could not process image"}, ""},
	{images, "Gemini", []string{"unable to process input image"}, ""},
	{images, "llama.cpp", []string{"failed to load image"}, ""},
	{images, "vLLM", []string{"cannot identify image"}, ""},

	{usageOption, several, []string{"stream_options"}, ""},
	{usageOption, several, []string{"include_usage"}, ""},

	{noStream, "OpenAI, of an organization that is not verified", []string{"to stream"}, ""},
	{noStream, "OpenAI, Azure", []string{"'stream'"}, ""},
	{noStream, "gateways", []string{"`stream`"}, ""},
	{noStream, "OpenAI, by the parameter", []string{`"param"`, `"stream"`}, ""},
	{noStream, "LiteLLM", []string{"stream=true"}, ""},
	{noStream, "vLLM", []string{"stream: true"}, ""},
	{noStream, "llama.cpp", []string{"tools with stream"}, ""},
	{noStream, "Bedrock", []string{"streaming mode"}, ""},
	{noStream, several, []string{"streaming", "support"}, ""},
	{noStream, several, []string{"streaming", "allow"}, ""},
	{noStream, several, []string{"streaming", "enabled"}, ""},
	{noStream, several, []string{"streaming", "disabled"}, ""},
	{noStream, several, []string{"streaming", "available"}, ""},
	{noStream, several, []string{"streaming", "permi"}, ""},

	// Azure and OpenAI, of another account, key or region.
	{encrypted, "OpenAI, Azure, OpenRouter, xAI", []string{"encrypted content"}, ""},
	{encrypted, "OpenAI, Azure, OpenRouter, xAI", []string{"encrypted_content"}, ""},
	{encrypted, "gateways", []string{"thinking", "decrypt"}, ""},
	{encrypted, "gateways", []string{"reasoning", "decrypt"}, ""},

	{effort, several, []string{"effort"}, ""},
	{effort, "OpenAI", []string{"reasoning.summary"}, ""},
	{effort, "OpenAI", []string{"encrypted content"}, ""},
	{effort, "OpenAI", []string{"encrypted_content"}, ""},
	{effort, "Ollama", []string{"support thinking"}, ""},
	{effort, "Ollama", []string{"think value"}, ""},
	{effort, several, []string{"low", "medium", "high"}, ""},

	// Who wants them says that they are missing, or that the message has something else in their place.
	{besideCalls, "gateways of Gemini", []string{"extra_content"}, "missing"},
	{besideCalls, "Gemini", []string{"thought_signature"}, "missing"},
	{besideCalls, "Gemini", []string{"thought signature"}, "missing"},
	{besideCalls, "OpenRouter", []string{"reasoning_details"}, "missing"},
	{besideCalls, "LiteLLM", []string{"thinking_blocks"}, "missing"},
	{besideCalls, "LiteLLM", []string{"provider_specific_fields"}, "missing"},
	{besideCalls, "Copilot", []string{"reasoning_opaque"}, "missing"},
	{besideCalls, "Anthropic, Bedrock, Vertex", []string{"invalid", "signature"}, "missing"},
	{besideCalls, "Anthropic", []string{"thinking", "cannot be modified"}, ""},
	{besideCalls, "Anthropic", []string{"extra inputs", "messages"}, ""},
	{besideCalls, "OpenAI, Azure", []string{"additional properties", "messages"}, ""},
	{besideCalls, "DeepSeek, and others in Rust", []string{"unknown field"}, ""},
	{besideCalls, "Cerebras, Groq", []string{"property", "unsupported"}, ""},
	{besideCalls, "Mistral", []string{"extra_forbidden"}, ""},

	{signatures, "Gemini, Vertex, of calls of other models", []string{"missing", "thought_signature"}, ""},

	{phases, "OpenAI, gateways", []string{"phase"}, ""},

	{needsTools, "Bedrock", []string{"toolconfig", "must be defined"}, ""},
	{needsTools, "LiteLLM, of Anthropic and Bedrock", []string{"tools=", "param"}, ""},
	{needsTools, "Anthropic, Vertex", []string{"must define tools"}, ""},
	{needsTools, "gateways of Anthropic", []string{"tool_use", "without tools"}, ""},
	{needsTools, "gateways of Anthropic", []string{"tool_use", "tools", "required"}, ""},
	{noToolChoice, several, []string{"tool_choice"}, ""},
	{noToolChoice, several, []string{"tool choice"}, ""},
	{noToolChoice, "Bedrock, Gemini", []string{"toolchoice"}, ""},

	{reasoning, several, []string{"reasoning"}, ""},
	{effort, several, []string{"reasoning"}, ""},

	{answerSchema, several, []string{"response_format"}, "Invalid schema"},
	{answerSchema, several, []string{"json_schema"}, "Invalid schema"},
	{answerSchema, "OpenAI", []string{"text.format"}, "Invalid schema"},
	{answerSchema, several, []string{"structured output"}, "Invalid schema"},

	{outputNames, "Gemini", []string{"function_response"}, ""},
	{outputNames, "Vertex", []string{"functionresponse"}, ""},
	{outputNames, "Vertex", []string{"function response", "name"}, ""},
	{outputNames, several, []string{"name cannot be empty"}, ""},
	{outputNames, "gateways", []string{"tool message", "name"}, ""},
	{outputNames, "Mistral, gateways", []string{"messages", ".name"}, "tool_calls"},

	{shortIDs, "OpenAI, Azure", []string{"id", "too long"}, ""},
	{shortIDs, "OpenAI, Azure", []string{"id", "maximum length"}, ""},
	{shortIDs, "Anthropic", []string{"id", "at most"}, ""},
	{shortIDs, "gateways", []string{"id", "longer than"}, ""},
	{shortIDs, "gateways", []string{"id", "length"}, "length of 9"},
	{shortIDs, "gateways", []string{"id of", "characters"}, ""},

	{idsOfCalls, "Mistral", []string{"tool call id"}, ""},
	{idsOfCalls, several, []string{"tool_call_id"}, ""},
	{idsOfCalls, several, []string{"tool_call.id"}, ""},
	{idsOfCalls, "Anthropic", []string{"tool_use.id"}, ""},
	{idsOfCalls, "Anthropic", []string{"tool_use_id"}, ""},
	{idsOfCalls, "OpenAI", []string{"call_id"}, ""},
	{idsOfCalls, "OpenAI", []string{"tool_calls", ".id"}, ""},
	{idsOfCalls, several, []string{"tool_calls", "].id"}, ""},

	{strictMember, several, []string{"strict"}, ""},

	{descriptions, "Bedrock", []string{"toolspec.description"}, ""},
	{descriptions, several, []string{"tools", "description"}, ""},
	{descriptions, several, []string{"function", "description"}, ""},
	{descriptions, "Gemini", []string{"function_declaration", "description"}, ""},

	{wholeSchemas, several, []string{"schema"}, "response_format"},
	{wholeSchemas, several, []string{"parameters"}, "response_format"},
	{wholeSchemas, "Gemini", []string{"function_declaration"}, "response_format"},
	{wholeSchemas, "OpenAI", []string{"tools["}, "response_format"},
	{wholeSchemas, "Anthropic", []string{"tools."}, "response_format"},
	{wholeSchemas, "OpenAI", []string{"tools", "too long"}, "response_format"},
	{wholeSchemas, several, []string{"tools", "too many"}, "response_format"},
	{wholeSchemas, several, []string{"tools", "maximum"}, "response_format"},
	{wholeSchemas, several, []string{"tools", "at most"}, "response_format"},

	{systemRole, "templates of Gemma and Mistral", []string{"system role"}, ""},
	{systemRole, several, []string{"role system"}, ""},
	{systemRole, several, []string{"role 'system'"}, ""},
	{systemRole, "OpenAI, of o1", []string{"support 'system'"}, ""},

	{emptyContent, "Anthropic", []string{"non-whitespace"}, ""},
	{emptyContent, "Anthropic", []string{"non-empty"}, ""},
	{emptyContent, "Bedrock", []string{"is blank"}, ""},
	{emptyContent, "OpenRouter, gateways", []string{"blank text"}, ""},

	{rolesInARow, several, []string{"role"}, ""},
	{rolesInARow, "templates", []string{"alternat"}, ""},
	{rolesInARow, "vLLM, SGLang", []string{"system message"}, ""},
	{rolesInARow, several, []string{"developer"}, ""},
	{rolesInARow, "llama.cpp", []string{"template"}, ""},
	{rolesInARow, "llama.cpp", []string{"jinja"}, ""},
	{rolesInARow, "Mistral", []string{"order"}, ""},
	{userAfterTool, several, []string{"role"}, ""},
	{userAfterTool, "templates", []string{"alternat"}, ""},
	{userAfterTool, "llama.cpp", []string{"template"}, ""},
	{userAfterTool, "llama.cpp", []string{"jinja"}, ""},
	{userAfterTool, "Mistral", []string{"order"}, ""},
	{userAfterTool, several, []string{"after", "tool"}, ""},
	{userAfterTool, several, []string{"follow", "tool"}, ""},
	{nullContent, several, []string{"content"}, ""},
	{nullContent, several, []string{"null"}, ""},
	{nullContent, "servers in Python", []string{"none"}, ""},
	{nullContent, "llama.cpp", []string{"template"}, ""},
	{nullContent, "llama.cpp", []string{"jinja"}, ""},
	{emptyContent, several, []string{"content", "empty"}, ""},
	{emptyContent, several, []string{"content", "at least 1"}, ""},
	{emptyContent, several, []string{"content", "required"}, ""},
	{systemRole, several, []string{"system"}, ""},

	// Other words about pictures, and about a content that is no text.
	{images, several, []string{"image"}, ""},
	{images, several, []string{"vision"}, ""},
	{images, several, []string{"multimodal"}, ""},
	{images, several, []string{"multi-modal"}, ""},
	{images, several, []string{"content", "string"}, ""},
	{images, several, []string{"content type"}, ""},

	{extras, several, []string{"prompt_cache_key"}, ""},
	{extras, several, []string{"parallel_tool_calls"}, ""},
	{extras, several, []string{"tool_choice"}, ""},
	{extras, several, []string{"verbosity"}, ""},
	{extras, several, []string{"parameter", "reasoning"}, ""},
	{extras, several, []string{"reasoning", "a valid"}, ""},
	{extras, several, []string{"'include'"}, ""},
	{extras, several, []string{`"include"`}, ""},
	{extras, several, []string{"`include`"}, ""},
	// OpenAI says other things about it, and would keep the conversation without it.
	{extras, several, []string{"store", "unknown"}, ""},
	{extras, several, []string{"store", "unsupported"}, ""},
	{extras, several, []string{"store", "unrecognized"}, ""},
	{extras, several, []string{"store", "extra"}, ""},

	{noStream, several, []string{"stream", "tool"}, "upstream"},

	{tooLong, "OpenAI", []string{"context_length_exceeded"}, ""},
	{tooLong, "llama.cpp", []string{"exceed_context_size"}, ""},
	{tooLong, "llama.cpp", []string{"available context size"}, ""},
	{tooLong, "vLLM, OpenRouter, DeepSeek, Mistral", []string{"maximum context length"}, ""},
	{tooLong, "vLLM", []string{"passed", "input tokens", "context length is"}, ""},
	{tooLong, "Moonshot", []string{"message size", "exceeds limit"}, ""},
	{tooLong, "LM Studio", []string{"greater than the context length"}, ""},
	{tooLong, "LM Studio", []string{"loaded with context length"}, ""},
	{tooLong, "LM Studio", []string{"n_keep", "n_ctx"}, ""},
	{tooLong, "Anthropic", []string{"prompt is too long"}, ""},
	{tooLong, "Anthropic", []string{"exceed context limit"}, ""},
	{tooLong, "llama-cpp-python", []string{"exceed", "context window"}, ""},
	{tooLong, "LiteLLM", []string{"contextwindowexceeded"}, ""},
	{tooLong, "Gemini", []string{"input token", "exceed", "maximum number of tokens"}, ""},
	{tooLong, "Cerebras, Groq", []string{"reduce the length of the messages"}, ""},
	{tooLong, "Bedrock", []string{"expected maxlength", "actual"}, ""},
	{tooLong, several, []string{"prompt too long"}, ""},
	{tooLong, "llama.cpp", []string{"prompt", "n_ctx"}, ""},
	{tooLong, "TensorRT-LLM", []string{"sum of prompt length"}, ""},
	{tooLong, "Doubao", []string{"exceed max message tokens"}, ""},
	{tooLong, "Gemini", []string{"payload size exceeds"}, ""},
	{tooLong, "llama.cpp", []string{"context size", "exceeded"}, ""},
	{tooLong, "llama.cpp", []string{"context shift is disabled"}, ""},
	{tooLong, "llama.cpp", []string{"compared to kv size"}, ""},
	{tooLong, "Qianfan", []string{"input characters"}, ""},
	{tooLong, "GLM, Hunyuan", []string{"超长"}, ""},
	{tooLong, "GLM, Hunyuan", []string{"过长"}, ""},
	{tooLong, "GLM, Hunyuan", []string{"输入", "超"}, ""},
	{tooLong, "GLM, Hunyuan", []string{"上下文", "超"}, ""},
	{tooLong, "GLM, Hunyuan", []string{"长度", "超过"}, ""},

	{tooOften, "OpenAI, Azure, Groq", []string{"rate limit"}, ""},
	{tooOften, "OpenAI, GitHub", []string{"rate_limit"}, ""},
	{tooOften, "GitHub, proxies", []string{"rate-limit"}, ""},
	{tooOften, "Gemini, LiteLLM, Doubao", []string{"ratelimit"}, ""},
	{tooOften, "Bedrock, DashScope", []string{"throttl"}, ""},
	{tooOften, several, []string{"too many requests"}, ""},
	{tooOften, "AWS", []string{"rate exceeded"}, ""},
	{tooOften, "Bedrock", []string{"too many tokens", "wait"}, ""},
	{tooOften, "Gemini, by its status", []string{"resource_exhausted"}, ""},
	{tooOften, several, []string{"requests per minute"}, ""},
	{tooOften, several, []string{"tokens per minute"}, ""},
	{tooOften, several, []string{"slow down"}, ""},
	{tooOften, "GLM, DashScope, Hunyuan", []string{"请求过于频繁"}, ""},
	{tooOften, "GLM, DashScope, Hunyuan", []string{"限流"}, ""},

	{badKey, "Gemini", []string{"api key", "not valid"}, ""},
	{badKey, several, []string{"api key", "invalid"}, ""},
	{badKey, "Gemini", []string{"api key", "expired"}, ""},
	{badKey, "Gemini", []string{"api_key_invalid"}, ""},
	{badKey, several, []string{"invalid_api_key"}, ""},
	{noScope, "OpenAI", []string{"scope"}, ""},
}
