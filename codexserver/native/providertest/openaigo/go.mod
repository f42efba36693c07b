module github.com/codexmcp/codexmcp/codexserver/native/providertest/openaigo

go 1.26.0

replace github.com/codexmcp/codexmcp => ../../../..

require (
	github.com/codexmcp/codexmcp v0.1.0
	github.com/google/go-cmp v0.7.0
	github.com/openai/openai-go/v3 v3.94.0
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
