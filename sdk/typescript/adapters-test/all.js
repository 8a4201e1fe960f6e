// All tests of the adapters, in one process, with one server.
import './vercel-ai.test.js';
import './langchain.test.js';
import './openai-agents.test.js';
import './claude-agent.test.js';
import './examples.test.js';
