// Package openaigo reads the streams of package providertest with OpenAI's Go library: the scripted provider
// works with a real client. What the library reads is in a file, and the engine's client must read the same.
package openaigo
