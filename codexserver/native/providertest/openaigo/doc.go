// Package openaigo reads the streams of package providertest with OpenAI's own Go library
// and compares what it sees with what the engine sees: so the scripted provider matches a
// real client. It is a module of its own, so that other packages do not need the library.
package openaigo
