// Package openaigo reads the streams of package providertest with OpenAI's own
// Go library and compares what it sees with what the engine sees: the scripted
// provider is no fiction of ours. It is a module of its own, so that nobody
// else needs the library.
package openaigo
