"""Models of MuJoCo that crash, never end or take all memory; as a program, writes them into the folder of its first argument."""

import os
import pathlib
import socket
import struct
import sys
import zlib

# What numbers are replaced with.
_BAD = ["nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "2147483648", "-1", "", "x", "0x10", "1e999"]


def model(top="", world="", body="", after="", joint='name="j"', motor='joint="j"', geom='size=".1"'):
    """A model that is valid without additions: a body with a joint and a motor."""
    return (
        f'<mujoco>{top}<worldbody>{world}<body name="b"><joint {joint}/><geom name="g" {geom}/>{body}</body></worldbody>'
        f'<actuator><motor {motor}/></actuator>{after}</mujoco>'
    )


def _nested(depth, outer="<body>", inner="", end="</body>"):
    return outer * depth + inner + end * depth


def _png(side, bits=8):
    """A picture of so many pixels in few bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer, packed = zlib.compressobj(9), []
    for _ in range(side):
        packed.append(packer.compress(bytes(1 + side)))
    packed.append(packer.flush())
    head = struct.pack(">IIBBBBB", side, side, bits, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"".join(packed)) + chunk(b"IEND", b"")


def _stl(count):
    return bytes(80) + struct.pack("<I", count) + bytes(50 * min(count, 4))


# Sizes of <size>.
_SIZES = ["nuser_body", "nuser_jnt", "nuser_geom", "nuser_site", "nuser_cam", "nuser_tendon", "nuser_actuator", "nuser_sensor"]
_OLD_SIZES = ["njmax", "nconmax", "nstack", "nkey", "nuserdata"]
# Iterations of <option>.
_ITERATIONS = ["iterations", "ls_iterations", "noslip_iterations", "ccd_iterations", "sdf_iterations", "sdf_initpoints"]


def table(folder: pathlib.Path):
    """All models: a name, and the text or the bytes of its file; other files that they name are written here."""
    def extra(name, content):
        path = folder / name
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return name

    for ending in ["", ".xml", ".stl", ".obj", ".png", ".skn", ".msh"]:
        os.mkfifo(folder / f"pipe{ending}")
    (folder / "folder").mkdir()
    yield "itself-model", '<mujoco><asset><model name="x" file="itself-model.xml"/></asset></mujoco>'
    yield "itself-attached", model('<asset><model name="x" file="itself-attached.xml"/></asset>', '<attach model="x" body="b" prefix="x"/>')
    yield "itself-included", '<mujoco><include file="itself-included.xml"/></mujoco>'
    extra("ping.xml", '<mujoco><asset><model name="x" file="pong.xml"/></asset></mujoco>')
    extra("pong.xml", '<mujoco><asset><model name="x" file="ping.xml"/></asset></mujoco>')
    yield "two-models", '<mujoco><asset><model name="x" file="ping.xml"/></asset></mujoco>'
    extra("in1.xml", '<mujoco><include file="in2.xml"/></mujoco>')
    extra("in2.xml", '<mujoco><include file="in1.xml"/></mujoco>')
    yield "two-includes", '<mujoco><include file="in1.xml"/></mujoco>'
    for level in range(12):
        inner = "".join(f'<model name="m{i}" file="tree{level + 1}.xml"/>' for i in range(10)) if level < 11 else ""
        extra(f"tree{level}.xml", model(f"<asset>{inner}</asset>"))
    yield "tree-of-models", '<mujoco><asset><model name="x" file="tree0.xml"/></asset></mujoco>'
    for name, target in [
        ("pipe", "pipe"), ("zero", "/dev/zero"), ("random", "/dev/urandom"), ("folder", "folder"), ("null", "/dev/null"),
        ("memory", "/proc/self/mem"), ("nowhere", "/nowhere/a"), ("passwd", "/etc/passwd"), ("tty", "/dev/tty"),
        ("stdin", "/dev/stdin"),
    ]:
        yield f"include-{name}", f'<mujoco><include file="{target}"/></mujoco>'
        yield f"model-{name}", f'<mujoco><asset><model name="x" file="{target}"/></asset></mujoco>'
    for name, target in [("pipe", "pipe"), ("zero", "/dev/zero"), ("folder", "folder"), ("nowhere", "nowhere")]:
        yield f"mesh-{name}", model(f'<asset><mesh name="m" file="{target}" content_type="model/stl"/></asset>', '<geom type="mesh" mesh="m"/>')
        yield f"texture-{name}", model(f'<asset><texture name="t" type="2d" file="{target}" content_type="image/png"/></asset>')
        yield f"hfield-{name}", model(f'<asset><hfield name="h" file="{target}" size="1 1 1 1" content_type="image/png"/></asset>', '<geom type="hfield" hfield="h"/>')
        yield f"skin-{name}", model(f'<asset><skin name="s" file="{target}"/></asset>')
    for kind, ending in [("mesh", "stl"), ("mesh", "obj"), ("mesh", "msh"), ("texture", "png"), ("skin", "skn"), ("model", "xml")]:
        yield f"{kind}-pipe-{ending}", model(f'<asset><{kind} name="x" file="pipe.{ending}"/></asset>')
    extra("deeper.xml", '<mujoco><include file="pipe"/></mujoco>')
    yield "include-pipe-deep", model('<include file="deeper.xml"/>')
    for size in _SIZES:
        yield f"{size}-huge", model(f'<size {size}="2000000000"/>')
    yield "nuser_geom-negative", model('<size nuser_geom="-7"/>')
    for size in _OLD_SIZES:
        yield f"{size}-huge", model(f'<size {size}="2000000000"/>')
    for size in ["1T", "1E", "100G", "9999999999999999999", "-3", "1", "x", "0"]:
        yield f"memory-{size}", model(f'<size memory="{size}"/>')
    for name in _ITERATIONS:
        yield f"{name}-huge", model(f'<option {name}="2147483647" tolerance="0" noslip_tolerance="0" ls_tolerance="0" ccd_tolerance="0"/>', '<geom type="plane" size="1 1 1"/>')
    yield "solver-never-ends", model(
        '<option iterations="2147483647" tolerance="0" solver="PGS" cone="elliptic"/>',
        '<geom type="plane" size="9 9 1"/>' + "".join(f'<body pos="0 0 {0.1 * i}"><freejoint/><geom size=".1"/></body>' for i in range(20)),
    )
    for count in ["1000000000", "2147483647", "-1", "100000000000"]:
        yield f"replicate-{count}", model(world=f'<replicate count="{count}" offset="1 0 0"><geom size=".1"/></replicate>')
    yield "replicate-nested", model(world=_nested(12, '<replicate count="100" offset="1 0 0">', '<geom size=".1"/>', "</replicate>"))
    yield "frames-deep", model(world=_nested(100_000, "<frame>", '<geom size=".1"/>', "</frame>"))
    yield "bodies-deep", model(world=_nested(100_000))
    yield "bodies-deep-open", "<mujoco><worldbody>" + "<body>" * 1_000_000
    yield "bodies-deep-valid", model(world=_nested(3000, '<body><joint/><geom size=".1"/>'))
    yield "defaults-deep", model(_nested(50_000, '<default class="x">', "", "</default>"))
    yield "elements-deep", "<mujoco>" * 300_000
    yield "bodies-many", model(world='<body><freejoint/><geom size=".1"/></body>' * 200_000)
    yield "geoms-in-one-place", model(world='<body><freejoint/><geom size=".1"/></body>' * 3000)
    for kind in ["cable", "rope", "particle", "grid", "cloth", "box", "cylinder", "ellipsoid", "loop"]:
        yield f"composite-{kind}", model(world=f'<body name="c"><composite type="{kind}" prefix="c" count="2000 2000 2000" size="1 1 1" offset="0 0 1" curve="s"><joint kind="main"/><geom size=".01"/></composite></body>')
    yield "composite-cable-long", model(
        "",
        '<composite type="cable" prefix="c" curve="s" count="100000000 1 1" size="1"><joint kind="main"/><geom type="capsule" size=".01"/></composite>',
    )
    for kind in ["grid", "box", "cylinder", "ellipsoid", "square", "disc", "circle", "direct", "mesh", "gmsh"]:
        yield f"flexcomp-{kind}", model(world=f'<flexcomp name="f" type="{kind}" count="2000 2000 2000" spacing=".1 .1 .1" radius=".01" mass="1" dim="3"/>')
    yield "flexcomp-2d", model(world='<flexcomp name="f" type="grid" count="60000 60000 1" spacing=".1 .1 .1" radius=".01" mass="1" dim="2"/>')
    yield "flexcomp-pipe", model(world='<flexcomp name="f" type="gmsh" file="pipe" dim="2"/>')
    for rows, columns in [(90_000, 90_000), (2_000_000_000, 1), (2_000_000_000, 2_000_000_000), (-1, 5), (0, 0)]:
        yield f"hfield-{rows}-{columns}", model(f'<asset><hfield name="h" nrow="{rows}" ncol="{columns}" size="1 1 1 1"/></asset>', '<geom type="hfield" hfield="h"/>')
    for side in [30_000, 100_000, 2_000_000_000, -4, 0]:
        for kind in ["2d", "cube", "skybox"]:
            yield f"texture-{kind}-{side}", model(f'<asset><texture name="t" type="{kind}" builtin="checker" width="{side}" height="{side}" mark="random" random="1"/></asset>')
    extra("bomb.png", _png(20_000))
    yield "texture-bomb", model('<asset><texture name="t" type="2d" file="bomb.png"/></asset>')
    yield "hfield-bomb", model('<asset><hfield name="h" file="bomb.png" size="1 1 1 1"/></asset>', '<geom type="hfield" hfield="h"/>')
    extra("cut.png", _png(64)[:60])
    yield "texture-cut", model('<asset><texture name="t" type="2d" file="cut.png"/></asset>')
    for name, content in [
        ("many", _stl(2_000_000_000)), ("few", _stl(4)), ("short", b"x" * 30), ("nan", bytes(80) + struct.pack("<I", 4) + struct.pack("<12fH", *[float("nan")] * 12, 0) * 4),
    ]:
        extra(f"{name}.stl", content)
        yield f"stl-{name}", model(f'<asset><mesh name="m" file="{name}.stl"/></asset>', '<geom type="mesh" mesh="m"/>')
    extra("far.obj", "v 0 0 0\nv 1e308 0 0\nv 0 nan 0\nv 0 0 1\n" + "f 1 2 999999999\n" * 9)
    yield "obj-indices", model('<asset><mesh name="m" file="far.obj"/></asset>', '<geom type="mesh" mesh="m"/>')
    extra("head.msh", struct.pack("<4i", 2_000_000_000, 2_000_000_000, 2_000_000_000, 2_000_000_000))
    yield "msh-sizes", model('<asset><mesh name="m" file="head.msh"/></asset>', '<geom type="mesh" mesh="m"/>')
    extra("head.skn", struct.pack("<4i", 2_000_000_000, 2_000_000_000, 2_000_000_000, 2_000_000_000))
    yield "skin-sizes", model('<asset><skin name="s" file="head.skn"/></asset>')
    extra("head.bin", struct.pack("<2i", 2_000_000_000, 2_000_000_000))
    yield "hfield-sizes", model('<asset><hfield name="h" file="head.bin" size="1 1 1 1"/></asset>', '<geom type="hfield" hfield="h"/>')
    points = " ".join(f"{(i * 7919) % 1000} {(i * 104729) % 1000} {(i * 15485863) % 1000}" for i in range(300_000))
    yield "mesh-hull", model(f'<asset><mesh name="m" vertex="{points}"/></asset>', '<geom type="mesh" mesh="m"/>')
    yield "mesh-faces", model('<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 2 0 1 999999999 -1 2 3 1 2 3"/></asset>', '<geom type="mesh" mesh="m"/>')
    yield "mesh-flat", model('<asset><mesh name="m" vertex="0 0 0 0 0 0 0 0 0 0 0 0"/></asset>', '<geom type="mesh" mesh="m"/>')
    for kind in ["sphere", "hemisphere", "supersphere", "supertorus", "cone", "plate"]:
        yield f"mesh-{kind}", model(f'<asset><mesh name="m" builtin="{kind}" params="2000000 2000000 2000000 2000000"/></asset>', '<geom type="mesh" mesh="m"/>')
    yield "keys-many", model(after="<keyframe>" + "<key/>" * 500_000 + "</keyframe>")
    yield "key-wrong", model(after='<keyframe><key qpos="nan nan nan nan"/></keyframe>')
    yield "name-long", model(world=f'<body name="{"n" * 1_000_000}"/>')
    yield "text-long", model(after=f'<custom><text name="t" data="{"d" * 5_000_000}"/></custom>')
    yield "numeric-huge", model(after='<custom><numeric name="n" size="2000000000" data="1"/></custom>')
    yield "tuple-many", model(after='<custom><tuple name="t">' + '<element objtype="body" objname="b"/>' * 100_000 + "</tuple></custom>")
    yield "sensor-user", model(after='<sensor><user name="u" dim="2000000000"/></sensor>')
    yield "sensor-plugin", model(after='<sensor><plugin name="u" plugin="mujoco.sensor.touch_grid"/></sensor>')
    yield "sensor-rangefinder", model(after='<sensor><rangefinder name="u" site="nowhere"/></sensor>')
    yield "sensor-history", model(after='<sensor><jointpos name="u" joint="j" nsample="2000000000" delay="1e308"/></sensor>')
    yield "plugin-unknown", model('<extension><plugin plugin="../../evil.so"/></extension>')
    yield "plugin-cable", model('<extension><plugin plugin="mujoco.elasticity.cable"><instance name="i"><config key="twist" value="1e308"/></instance></plugin></extension>', body='<plugin instance="i"/>')
    yield "plugin-config", model(f'<extension><plugin plugin="mujoco.pid"><instance name="i"><config key="{"k" * 500_000}" value="nan"/></instance></plugin></extension>')
    yield "tendon-endless", model(after='<tendon><spatial>' + '<site site="s"/>' * 100_000 + "</spatial></tendon>")
    yield "equality-many", model(after='<equality>' + '<weld body1="b"/>' * 20_000 + "</equality>")
    yield "excludes-many", model(after='<contact>' + '<exclude body1="b" body2="world"/>' * 100_000 + "</contact>")
    yield "pairs-many", model(after='<contact>' + '<pair geom1="g" geom2="g"/>' * 100_000 + "</contact>")
    yield "actuators-many", model(after='<actuator>' + '<motor joint="j"/>' * 500_000 + "</actuator>")
    yield "actuator-muscle", model(after='<actuator><muscle joint="j" force="nan" scale="1e308" lengthrange="1 0"/></actuator>')
    yield "inttotal", model('<compiler><lengthrange inttotal="1e18" mode="all" timestep="1e-9"/></compiler>', joint='name="j" type="hinge"')
    yield "inttotal-useexisting", model('<compiler><lengthrange inttotal="1e308" interval="0" mode="all" useexisting="false" uselimit="false" timestep="1e-300" tolrange="0"/></compiler>', joint='name="j" type="hinge"')
    yield "compiler-boundmass", model('<compiler boundmass="1e308" boundinertia="1e308" settotalmass="1e308"/>')
    yield "compiler-discardvisual", model('<compiler discardvisual="true" fusestatic="true" balanceinertia="true" inertiagrouprange="-2000000000 2000000000"/>')
    for bad in _BAD:
        yield f"position-{bad or 'empty'}".replace("/", ""), model(world=f'<body pos="0 0 {bad}"><freejoint/><geom size=".1"/></body>')
        yield f"timestep-{bad or 'empty'}", model(f'<option timestep="{bad}"/>')
    for bad in ["nan", "1e308", "-1", "inf"]:
        yield f"quat-{bad}", model(world=f'<body quat="{bad} 0 0 0"><freejoint/><geom size=".1"/></body>')
        yield f"mass-{bad}", model(geom=f'size=".1" mass="{bad}"')
        yield f"size-{bad}", model(geom=f'size="{bad}"')
        yield f"gravity-{bad}", model(f'<option gravity="0 0 {bad}"/>')
        yield f"stiffness-{bad}", model(joint=f'name="j" stiffness="{bad}" damping="{bad}" springref="{bad}"')
        yield f"reference-{bad}", model(joint=f'name="j" ref="{bad}"')
        yield f"gear-{bad}", model(motor=f'joint="j" gear="{bad}" ctrlrange="{bad} {bad}" ctrllimited="true"')
        yield f"solimp-{bad}", model(world='<geom type="plane" size="1 1 1"/>', geom=f'size=".1" solimp="{bad} {bad} {bad}" solref="{bad} {bad}" friction="{bad}"')
    yield "camera-resolution", model(world='<camera resolution="2000000000 2000000000"/>')
    yield "visual-huge", model('<visual><global offwidth="2000000000" offheight="2000000000"/><quality shadowsize="2000000000" offsamples="2000000000" numslices="2000000000"/></visual>')
    yield "statistic-nan", model('<statistic extent="nan" meansize="inf" center="nan nan nan"/>')
    yield "flags-unknown", model('<option><flag contact="maybe"/></option>')
    yield "empty", ""
    yield "no-xml", "this is no model\n" * 1000
    yield "binary", bytes((i * 2654435761 >> 7) & 255 for i in range(100_000))
    yield "elf", b"\x7fELF" + bytes(4096)
    yield "zeros", bytes(1_000_000)
    yield "utf-16", model().encode("utf-16")
    yield "latin-1", model(world='<body name="é"/>').encode("latin-1")
    yield "bom", b"\xef\xbb\xbf" * 10 + model().encode()
    yield "cut", model()[:90]
    yield "entities", '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">' + "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(12)) + "]><mujoco model='&m;'/>"
    yield "entity-file", '<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]><mujoco model="&x;"/>'
    yield "urdf", '<robot name="r"><link name="l"><visual><geometry><mesh filename="pipe"/></geometry></visual></link></robot>'
    yield "urdf-deep", '<robot name="r"><link name="l0"/>' + "".join(f'<link name="l{i}"/><joint name="j{i}" type="fixed"><parent link="l{i - 1}"/><child link="l{i}"/></joint>' for i in range(1, 20_000)) + "</robot>"
    yield "urdf-circle", '<robot name="r"><link name="a"/><link name="b"/><joint name="x" type="fixed"><parent link="a"/><child link="b"/></joint><joint name="y" type="fixed"><parent link="b"/><child link="a"/></joint></robot>'
    yield "attributes-many", "<mujoco><worldbody><body " + " ".join(f'a{i}="1"' for i in range(200_000)) + "/></worldbody></mujoco>"
    yield "attribute-long", model(world=f'<body pos="{"0 " * 2_000_000}"/>')
    yield "too-long", model(world="<body/>" * 2_500_000)
    yield "control-characters", model(world='<body name="\x1b[31m\x07"/><body name="\x1b[31m\x07"/>')


def write(folder):
    """Writes all models; returns their files in the order of the table."""
    folder = pathlib.Path(folder)
    files = []
    for name, content in table(folder):
        path = folder / f"{name}.xml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        files.append(path)
    os.mkfifo(folder / "fifo.xml")
    (folder / "a-folder.xml").mkdir()
    (folder / "a-link.xml").symlink_to("a-link.xml")
    (folder / "a-device.xml").symlink_to("/dev/zero")
    listener = socket.socket(socket.AF_UNIX)
    previous = os.getcwd()
    os.chdir(folder)
    listener.bind("a-socket.xml")
    os.chdir(previous)
    return files + [folder / f"{name}.xml" for name in ("fifo", "a-folder", "a-link", "a-device", "a-socket", "nowhere")]


if __name__ == "__main__":
    for file in write(sys.argv[1]):
        print(file)
