// An issuer of OpenID Connect on loopback: `node provider.mjs PORT AUDIENCE GROUPS`, with the groups of each
// account or client as JSON. People sign in by the provider's own pages for development, programs by their
// secret. Each start makes new keys.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const [port, audience, groups] = [process.argv[2], process.argv[3], JSON.parse(process.argv[4])];
const key = (kty, alg) => {
  const pair = kty === "RSA" ? ["rsa", { modulusLength: 2048 }] : ["ec", { namedCurve: "P-256" }];
  return { ...generateKeyPairSync(...pair).privateKey.export({ format: "jwk" }), alg, use: "sig" };
};
const server = (alg) => ({
  scope: "triage",
  audience,
  accessTokenTTL: 300,
  accessTokenFormat: "jwt",
  jwt: { sign: { alg } },
});
const client = (name, more) => ({ client_id: name, client_secret: `secret-of-${name}`, ...more });
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    ...Object.keys(groups).map((name) =>
      client(name, { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] }),
    ),
    client("page", { redirect_uris: ["http://127.0.0.1/signed-in"], grant_types: ["authorization_code"] }),
  ],
  cookies: { keys: ["of these tests"] },
  jwks: { keys: [key("RSA", "RS256"), key("EC", "ES256")] },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_context, token) => ({ groups: groups[token.accountId ?? token.clientId] ?? [] }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "urn:rsa",
      getResourceServerInfo: (_context, resource) => server(resource === "urn:ec" ? "ES256" : "RS256"),
      useGrantedResource: () => true,
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
